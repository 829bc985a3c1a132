package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/requestbody"
)

const duplicated = `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"NAME"},
"spec":{"revision":1,"revision":1,"phases":[{"name":"one","objects":[{"object":
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"k":"1"}}}]}]}}`

// TestStockAnswers: errors about a request itself have the library's text, as for other kinds.
func TestStockAnswers(t *testing.T) {
	const limit = 100 << 10
	s := newServer(t, settings{maxBodyBytes: limit, budget: requestbody.NewBudget(1 << 20)})
	large := file("e-1", inline(configMap("a", strings.Repeat("x", 2*limit))))
	unknown := with(file("e-1", inline(configMap("a", "1"))), 1, "spec", "bogus")

	for name, tc := range map[string]struct {
		send func() response
		code int
		want string
	}{
		"TooLarge": {
			send: func() response { return s.create(large) },
			code: http.StatusRequestEntityTooLarge, want: "limit is 102400",
		},
		"TooLargeApply": {
			send: func() response { return s.apply("kubectl", large) },
			code: http.StatusRequestEntityTooLarge, want: "limit is 102400",
		},
		"UnknownField": {
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions + "?fieldValidation=Strict", body: unknown})
			},
			code: http.StatusBadRequest, want: `unknown field \"spec.bogus\"`,
		},
		"DuplicateField": {
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions + "?fieldValidation=Strict", body: strings.ReplaceAll(duplicated, "NAME", "e-1")})
			},
			code: http.StatusBadRequest, want: `duplicate field \"spec.revision\"`,
		},
		"Syntax": {
			send: func() response { return s.do(call{method: http.MethodPost, path: revisions, body: `{"spec":`}) },
			code: http.StatusBadRequest, want: "unexpected end of JSON input",
		},
		"WrongType": {
			send: func() response { return s.create(with(file("e-1", nil), "x", "spec", "phases")) },
			code: http.StatusBadRequest, want: "cannot unmarshal string",
		},
		"MediaType": {
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions, contentType: "application/vnd.kubernetes.protobuf", body: "x"})
			},
			code: http.StatusUnsupportedMediaType, want: "application/json",
		},
		"PatchOfNothing": {
			send: func() response { return s.patch("e-9", mergePatch, file("e-9", inline(configMap("a", "1")))) },
			code: http.StatusNotFound, want: `\"e-9\" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.unchanged(func() {
				if answer := tc.send().want(t, tc.code); !strings.Contains(answer.raw, tc.want) {
					t.Errorf("the answer does not say %q: %s", tc.want, answer.raw)
				}
			})
		})
	}

	// By default duplicate fields cause a warning. The manifest passed the filter, and is still
	// replaced.
	created := s.do(call{method: http.MethodPost, path: revisions, body: strings.ReplaceAll(duplicated, "NAME", "d-1")}).want(t, http.StatusCreated)
	if at(entry(created.body, 0), "digest") == nil || at(entry(created.body, 0), "object") != nil {
		t.Errorf("the manifest was not replaced: %s", created.raw)
	}
	if !strings.Contains(strings.Join(created.warnings, ";"), "duplicate field") {
		t.Errorf("warnings %q, want one about the duplicate", created.warnings)
	}
}
