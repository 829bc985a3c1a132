package clusterextensionrevision

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/requestbody"
)

const (
	configMapBody = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"d"}}`
)

func testDigester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}
}

func digestOf(t *testing.T, body string) string {
	t.Helper()
	object, err := testDigester().FromJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return string(object.Digest)
}

// received is the request that the handler after the filter gets.
type received struct {
	body    string
	length  int64
	readErr error
	staged  []string
}

// filterFor returns the filter in front of an endpoint that records its request.
func filterFor(budget *requestbody.Budget, limit int64, got *received) http.Handler {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	endpoint := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		*got = received{body: string(body), length: req.ContentLength, readErr: err}
		for digest := range stagedFrom(req.Context()).objects {
			got.staged = append(got.staged, string(digest))
		}
	})
	return WithBodies(endpoint, FilterDeps{
		Digester:     testDigester(),
		Serializer:   serializer.NewCodecFactory(scheme),
		Budget:       budget,
		MaxBodyBytes: limit,
		Authorizer:   authorizerfactory.NewAlwaysAllowAuthorizer(),
		Stored: func(_ context.Context, name string) (*olm.ClusterExtensionRevision, error) {
			if name != "e-1" {
				return nil, apierrors.NewNotFound(v1alpha1.Resource(resource), name)
			}
			return &olm.ClusterExtensionRevision{Spec: olm.ClusterExtensionRevisionSpec{Phases: []olm.RevisionPhase{{
				Objects: []olm.RevisionObject{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "d", Name: "a", Digest: "sha256:1", Size: 42}},
			}}}}, nil
		},
	})
}

func requestFor(method, verb, name, contentType, body string) *http.Request {
	req := httptest.NewRequest(method, "/", strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	return req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{
		IsResourceRequest: true, APIGroup: v1alpha1.GroupName, APIVersion: "v1alpha1", Resource: resource, Verb: verb, Name: name,
	}))
}

func TestFilterReplaces(t *testing.T) {
	digest := digestOf(t, configMapBody)
	inline := `{"spec":{"phases":[{"name":"p","objects":[{"object":` + configMapBody + `,"size":3,"collisionProtection":"None"}]}]}}`
	replaced := `{"spec":{"phases":[{"name":"p","objects":[{"apiVersion":"v1","collisionProtection":"None","digest":"` + digest + `","kind":"ConfigMap","name":"a","namespace":"d","size":78}]}]}}`
	inYAML := "spec:\n  phases:\n  - name: p\n    objects:\n    - collisionProtection: None\n      object:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {name: a, namespace: d}\n"
	byDigest := func(digest, size string) string {
		return `{"spec":{"phases":[{"objects":[{"apiVersion":"v1","digest":"` + digest + `","kind":"ConfigMap","name":"a","namespace":"d"` + size + `}]}]}}`
	}
	entry := `{"object":` + configMapBody + `}`
	patchOf := func(op, path, value string) string {
		return `[{"op":"` + op + `","path":"` + path + `","value":` + value + `}]`
	}
	nameless := `{"spec":{"phases":[{"objects":[{"object":{"apiVersion":"v1","kind":"ConfigMap"}}]}]}}`

	for name, tc := range map[string]struct {
		reason                          string
		method, verb, name, contentType string
		body, want                      string
		staged                          []string
	}{
		"Create":         {"manifests become digests", "POST", "create", "", "application/json", inline, replaced, []string{digest}},
		"NoContentType":  {"JSON is what the endpoint assumes", "POST", "create", "", "", inline, replaced, []string{digest}},
		"Charset":        {"parameters of the type do not matter", "POST", "create", "", "application/json; charset=utf-8", inline, replaced, []string{digest}},
		"CreateYAML":     {"YAML too, as JSON", "POST", "create", "", "application/yaml", inYAML, replaced, []string{digest}},
		"Update":         {"PUT", "PUT", "update", "e-1", "application/json", inline, replaced, []string{digest}},
		"Merge":          {"patches", "PATCH", "patch", "e-1", "application/merge-patch+json", inline, replaced, []string{digest}},
		"Strategic":      {"patches", "PATCH", "patch", "e-1", "application/strategic-merge-patch+json", inline, replaced, []string{digest}},
		"Apply":          {"patches", "PATCH", "patch", "e-1", "application/apply-patch+yaml", inline, replaced, []string{digest}},
		"ApplyYAML":      {"patches", "PATCH", "patch", "e-1", "application/apply-patch+yaml", inYAML, replaced, []string{digest}},
		"JSONPatch":      {"left to the strategy", "PATCH", "patch", "e-1", "application/json-patch+json", `[{"op":"add"}]`, `[{"op":"add"}]`, nil},
		"JSONPatchAdd":   {"its values are known", "PATCH", "patch", "e-1", "application/json-patch+json", patchOf("add", "/spec/phases/0/objects", "["+entry+"]"), patchOf("add", "/spec/phases/0/objects", "["+entry+"]"), []string{digest}},
		"JSONPatchField": {"its values are known", "PATCH", "patch", "e-1", "application/json-patch+json", patchOf("replace", "/spec/phases/0/objects/0/object", configMapBody), patchOf("replace", "/spec/phases/0/objects/0/object", configMapBody), []string{digest}},
		"JSONPatchTest":  {"what it only compares with does not come in", "PATCH", "patch", "e-1", "application/json-patch+json", patchOf("test", "/spec/phases/0/objects/0", entry), patchOf("test", "/spec/phases/0/objects/0", entry), nil},
		"Protobuf":       {"left to the endpoint to refuse", "POST", "create", "", "application/vnd.kubernetes.protobuf", inline, inline, nil},
		"Duplicates":     {"not hidden from the endpoint's checks", "POST", "create", "", "application/json", `{"a":1,"a":2,` + inline[1:], `{"a":1,"a":2,` + inline[1:], []string{digest}},
		"DuplicatesYAML": {"nor in YAML", "POST", "create", "", "application/yaml", "a: 1\na: 2\n" + inYAML, "a: 1\na: 2\n" + inYAML, []string{digest}},
		"BadUTF8":        {"not replaced silently", "POST", "create", "", "application/json", strings.Replace(inline, `"a"`, "\"\xff\"", 1), strings.Replace(inline, `"a"`, "\"\xff\"", 1), []string{digestOf(t, strings.Replace(configMapBody, `"a"`, "\"\ufffd\"", 1))}},
		"Syntax":         {"left to the endpoint", "POST", "create", "", "application/json", `{"spec":`, `{"spec":`, nil},
		"BadManifest":    {"left inline for the strategy to report", "POST", "create", "", "application/json", nameless, nameless, nil},
		"NothingToDo":    {"bytes are kept", "PATCH", "patch", "e-1", "application/merge-patch+json", `{"spec": {"lifecycleState": "Paused"}}`, `{"spec": {"lifecycleState": "Paused"}}`, nil},
		"SizeFilledIn":   {"the size that is stored", "PATCH", "patch", "e-1", "application/apply-patch+yaml", byDigest("sha256:1", ""), byDigest("sha256:1", `,"size":42`), nil},
		"SizeCorrected":  {"whatever the client says", "PUT", "update", "e-1", "application/json", byDigest("sha256:1", `,"size":7`), byDigest("sha256:1", `,"size":42`), nil},
		"SizeUnknown":    {"other content has none", "PUT", "update", "e-1", "application/json", byDigest("sha256:2", `,"size":7`), byDigest("sha256:2", ""), nil},
		"SizeOnCreate":   {"the strategy does it", "POST", "create", "", "application/json", byDigest("sha256:1", `,"size":7`), byDigest("sha256:1", `,"size":7`), nil},
		"OtherShapes":    {"of no concern", "POST", "create", "", "application/json", `{"spec":{"phases":[3,{"objects":[4,{"object":5}]}]}}`, `{"spec":{"phases":[3,{"objects":[4,{"object":5}]}]}}`, nil},
		"FieldWrongType": {"the endpoint complains of it", "POST", "create", "", "application/json", strings.Replace(inline, `"size"`, `"name":5,"size"`, 1), strings.Replace(inline, `"size"`, `"name":5,"size"`, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got received
			filterFor(nil, 0, &got).ServeHTTP(httptest.NewRecorder(), requestFor(tc.method, tc.verb, tc.name, tc.contentType, tc.body))
			want := received{body: tc.want, length: int64(len(tc.want)), staged: tc.staged}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(received{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFilterLeavesOthersAlone(t *testing.T) {
	inline := `{"spec":{"phases":[{"objects":[{"object":` + configMapBody + `}]}]}}`
	for name, change := range map[string]func(*request.RequestInfo){
		"Group":       func(i *request.RequestInfo) { i.APIGroup = "apps" },
		"Resource":    func(i *request.RequestInfo) { i.Resource = "others" },
		"Subresource": func(i *request.RequestInfo) { i.Subresource = "status" },
		"Verb":        func(i *request.RequestInfo) { i.Verb = "deletecollection" },
		"NoResource":  func(i *request.RequestInfo) { i.IsResourceRequest = false },
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor("POST", "create", "", "application/json", inline)
			info, _ := request.RequestInfoFrom(req.Context())
			change(info)
			var got received
			filterFor(nil, 0, &got).ServeHTTP(httptest.NewRecorder(), req)
			if got.body != inline {
				t.Errorf("the body became %s", got.body)
			}
		})
	}
}

// TestFilterIncompleteBodies: a body that is too long reaches the endpoint unchanged. The filter
// answers a body that ends early.
func TestFilterIncompleteBodies(t *testing.T) {
	body := `{"spec":{"phases":[]}}`
	var got received
	filterFor(nil, 10, &got).ServeHTTP(httptest.NewRecorder(), requestFor("POST", "create", "", "application/json", body))
	if got.body != body || got.readErr != nil {
		t.Errorf("a body beyond the limit arrived as %q, error %v", got.body, got.readErr)
	}

	got = received{}
	req := requestFor("POST", "create", "", "application/json", "")
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:5]), failingReader{errors.New("connection reset")}))
	answer := httptest.NewRecorder()
	filterFor(nil, 0, &got).ServeHTTP(answer, req)
	if got.body != "" || answer.Code != http.StatusBadRequest {
		t.Errorf("a body that breaks off: answer %d, the endpoint got %q", answer.Code, got.body)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestFilterBudget: large bodies are refused while other bodies use the budget. Small bodies are
// never refused.
func TestFilterBudget(t *testing.T) {
	budget := requestbody.NewBudget(1 << 20)
	large := `{"x":"` + strings.Repeat("x", 100<<10) + `"}`
	holder := budget.Share("alice")
	if err := holder.Set(900 << 10); err != nil {
		t.Fatal(err)
	}
	var got received
	handler := filterFor(budget, 3<<20, &got)

	for name, length := range map[string]int64{"announced": int64(len(large)), "unannounced": -1} {
		req := requestFor("POST", "create", "", "application/json", large)
		req.ContentLength = length
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: status %d, Retry-After %q, want 429 and 1", name, answer.Code, answer.Header().Get("Retry-After"))
		}
		var status struct{ Reason string }
		if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil || status.Reason != "TooManyRequests" {
			t.Errorf("%s: reason %q (%v), want TooManyRequests: %s", name, status.Reason, err, answer.Body)
		}
	}

	unannounced := requestFor("POST", "create", "", "application/json", `{}`)
	unannounced.ContentLength = -1
	for name, req := range map[string]*http.Request{
		"unannounced": unannounced,
		"announced":   requestFor("PATCH", "patch", "e-1", "application/merge-patch+json", `{}`),
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		if answer.Code != http.StatusOK || got.body != `{}` {
			t.Errorf("a small body, %s, got %d, want 200: it counts for what is here of it", name, answer.Code)
		}
	}

	holder.GiveBack()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, requestFor("POST", "create", "", "application/json", large))
	if answer.Code != http.StatusOK || got.body != large {
		t.Errorf("with the budget free the large body got %d, want 200", answer.Code)
	}
	if err := budget.Share("nobody").Set(1 << 20); err != nil {
		t.Errorf("a request kept its share of the budget: %v", err)
	}
}

// BenchmarkFilter reads the largest possible revision.
func BenchmarkFilter(b *testing.B) {
	entries := make([]any, v1alpha1.MaxObjects)
	for i := range entries {
		data := map[string]any{}
		for k := range 16 {
			data["key-"+strings.Repeat("k", k)] = strings.Repeat("value ", 40)
		}
		entries[i] = map[string]any{"object": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data,
			"metadata": map[string]any{"name": "a" + strings.Repeat("b", i%200), "namespace": "d", "labels": map[string]any{"n": json.Number(strings.Repeat("1", 1+i%9)).String()}},
		}}
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"phases": []any{map[string]any{"name": "p", "objects": entries}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var got received
	handler := filterFor(nil, 0, &got)
	for b.Loop() {
		handler.ServeHTTP(httptest.NewRecorder(), requestFor("POST", "create", "", "application/json", string(body)))
	}
}

func forSubresource(req *http.Request, subresource string) *http.Request {
	info, _ := request.RequestInfoFrom(req.Context())
	info.Subresource = subresource
	return req
}
