package clusterextensionrevision

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/requestbody"
)

// allocated returns the number of bytes that f allocates, garbage included.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestBodiesThatGrow: the filter refuses a short body that takes much memory, for any resource.
func TestBodiesThatGrow(t *testing.T) {
	const limit = 64 << 20
	objects := `{"x":[` + strings.Repeat(`{"a":1},`, 1<<20) + `1]}`
	inString := `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"[` + strings.Repeat(`{},`, 3<<20) + `1]"}}}`
	status := func(req *http.Request) *http.Request { return forSubresource(req, "status") }
	for name, tc := range map[string]struct {
		reason string
		req    *http.Request
		code   int
		most   int64
	}{
		"Aliases":       {"34 KiB must not become 90 MiB", requestFor("POST", "create", "", "application/yaml", bomb(8000, 8000)), http.StatusBadRequest, 4 << 20},
		"AliasesApply":  {"nor in a patch", requestFor("PATCH", "patch", "e-1", "application/apply-patch+yaml", bomb(8000, 8000)), http.StatusBadRequest, 4 << 20},
		"AliasesStatus": {"nor of a subresource", status(requestFor("PATCH", "patch", "e-1", "application/apply-patch+yaml", bomb(8000, 8000))), http.StatusBadRequest, 4 << 20},
		"Objects":       {"small objects take fifty times their text", requestFor("POST", "create", "", "application/json", objects), http.StatusRequestEntityTooLarge, 16 << 20},
		"Patch":         {"also in a JSON patch", requestFor("PATCH", "patch", "e-1", "application/json-patch+json", objects), http.StatusRequestEntityTooLarge, 16 << 20},
		"Status":        {"also of a subresource", status(requestFor("PUT", "update", "e-1", "application/json", objects)), http.StatusRequestEntityTooLarge, 16 << 20},
		"InString":      {"what kubectl remembers is decoded too; the buffer grows as it comes", requestFor("POST", "create", "", "application/json", inString), http.StatusRequestEntityTooLarge, 24 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			budget := requestbody.NewBudget(64 << 20)
			var got received
			handler := filterFor(budget, limit, &got)
			answer := httptest.NewRecorder()
			used := allocated(func() { handler.ServeHTTP(answer, tc.req) })
			if answer.Code != tc.code || got.body != "" {
				t.Errorf("%s: status %d, want %d; the endpoint got %d bytes", tc.reason, answer.Code, tc.code, len(got.body))
			}
			if used > tc.most {
				t.Errorf("%s: refusing it took %d bytes, want %d at most", tc.reason, used, tc.most)
			}
			if err := budget.Share("nobody").Set(64 << 20); err != nil {
				t.Errorf("%s: it kept its share of the budget: %v", tc.reason, err)
			}
		})
	}
}

// TestLargeRevisionsPass: the largest possible revision fits into the default budget, also as
// client-side kubectl apply sends it.
func TestLargeRevisionsPass(t *testing.T) {
	entry := `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d","namespace":"d","labels":{"app":"x"}},"data":{"a":"1","b":"2","text":"%s"}}}`
	var entries []string
	for i := range v1alpha1.MaxObjects {
		entries = append(entries, fmt.Sprintf(entry, i, strings.Repeat("x", v1alpha1.MaxManifestBytes/v1alpha1.MaxObjects-150)))
	}
	body := `{"spec":{"phases":[{"name":"p","objects":[` + strings.Join(entries, ",") + `]}]}`
	again := strings.ReplaceAll(body, `"`, `\"`) + "}"
	for name, text := range map[string]string{
		"Once":  body + "}",
		"Twice": body + `,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + again + `"}}}`,
	} {
		var got received
		answer := httptest.NewRecorder()
		filterFor(requestbody.NewBudget(requestbody.DefaultBudget), 64<<20, &got).ServeHTTP(answer, requestFor("POST", "create", "", "application/json", text))
		if answer.Code != http.StatusOK || len(got.staged) != len(entries) {
			t.Errorf("%s: %d bytes: status %d, %d manifests of %d: %.200s", name, len(text), answer.Code, len(got.staged), len(entries), answer.Body)
		}
	}
}

// bomb returns a short YAML text whose aliases expand to a long text.
func bomb(text, uses int) string {
	return "a: &a " + strings.Repeat("x", text) + "\nb: [" + strings.Repeat("*a,", uses) + "1]\n"
}
