package lookup

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/imagetemplate"
)

// served are the kinds of example.com/v1 and of the core group in the tests.
var served = map[string][]metav1.APIResource{
	"/apis/example.com/v1": {
		{Name: "samples", Kind: "Sample", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		{Name: "samples/status", Kind: "Status", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		{Name: "wholes", Kind: "Whole", Verbs: metav1.Verbs{"get", "list", "watch", "create"}},
		{Name: "reviews", Kind: "Review", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		{Name: "unlisted", Kind: "Unlisted", Namespaced: true, Verbs: metav1.Verbs{"get", "watch"}},
		{Name: "unwatched", Kind: "Unwatched", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
		{Name: "elsewhere", Kind: "Elsewhere", Namespaced: true, Group: "other.example.com", Verbs: metav1.Verbs{"get", "list", "watch"}},
	},
	"/api/v1": {{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}},
}

type cluster struct {
	mu    sync.Mutex
	asked []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Path)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	say := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "no"})
	}
	if kinds, is := served[r.URL.Path]; is {
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: strings.TrimPrefix(r.URL.Path, "/apis/"), APIResources: kinds})
		return
	}
	sample := func(tag string) {
		_, _ = fmt.Fprintf(w, `{"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "x"}, "spec": {"tag": %s}}`, tag)
	}
	switch r.URL.Path {
	case "/version":
		_, _ = io.WriteString(w, `{"major": "1", "minor": "36+", "gitVersion": "v1.36.3+k3s1"}`)
	case "/apis/away.example.com/v1":
		say(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case "/apis/example.com/v1/namespaces/ns/samples/one":
		sample(`"v7"`)
	case "/apis/example.com/v1/namespaces/ns/samples/hostile":
		sample(`"s3cr3t/x"`)
	case "/apis/example.com/v1/namespaces/ns/samples/map":
		sample(`{"a": "s3cr3t"}`)
	case "/apis/example.com/v1/namespaces/ns/samples/forbidden":
		say(http.StatusForbidden, metav1.StatusReasonForbidden)
	case "/apis/example.com/v1/namespaces/ns/samples/away":
		say(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	default:
		say(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func newReader(t *testing.T) (*Reader, *cluster) {
	t.Helper()
	c := &cluster{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	reader, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return reader, c
}

// TestFind: Find distinguishes kinds that a template can name, temporary errors and permanent
// errors.
func TestFind(t *testing.T) {
	object := func(kind, namespace string) imagetemplate.Object {
		return imagetemplate.Object{Group: "example.com", Version: "v1", Kind: kind, Namespace: namespace, Name: "one"}
	}
	for name, tc := range map[string]struct {
		reason   string
		object   imagetemplate.Object
		want     string
		missing  string
		kind     bool
		mayPass  bool
		notAsked bool
	}{
		"Namespaced":    {reason: "an object in a namespace", object: object("Sample", "ns"), want: "get samples.example.com ns/one"},
		"ClusterScoped": {reason: "an object in none", object: object("Whole", ""), want: "get wholes.example.com one"},
		"Core":          {reason: "the core group", object: imagetemplate.Object{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "one"}, want: "get configmaps ns/one"},
		"Secret":        {reason: "never", object: imagetemplate.Object{Version: "v1", Kind: "Secret", Namespace: "ns", Name: "one"}, missing: "never read Secrets", notAsked: true},
		"NoName":        {reason: "a list is no object", object: imagetemplate.Object{Group: "example.com", Version: "v1", Kind: "Sample", Namespace: "ns"}, missing: "names no object", notAsked: true},
		"NoNamespace":   {reason: "which one?", object: object("Sample", ""), missing: "names no namespace"},
		"Namespace":     {reason: "there is none", object: object("Whole", "ns"), missing: "names a namespace"},
		"NoGet":         {reason: "a kind that is only created", object: object("Review", "ns"), missing: "no verb get"},
		"NoList":        {reason: "nobody could see it change", object: object("Unlisted", "ns"), missing: "no verb list"},
		"NoWatch":       {reason: "nobody could see it change", object: object("Unwatched", "ns"), missing: "no verb watch"},
		"Subresource":   {reason: "the kind of a subresource", object: object("Status", "ns"), missing: "no kind Status", kind: true},
		"OtherGroup":    {reason: "listed here, and of another group", object: object("Elsewhere", "ns"), missing: "no kind Elsewhere", kind: true},
		"OtherCase":     {reason: "no kind", object: object("SAMPLE", "ns"), missing: "no kind SAMPLE", kind: true},
		"NoGroup":       {reason: "it may come", object: imagetemplate.Object{Group: "later.example.com", Version: "v1", Kind: "Sample", Namespace: "ns", Name: "one"}, missing: "does not serve later.example.com/v1", kind: true},
		"Away":          {reason: "an aggregated API that does not answer", object: imagetemplate.Object{Group: "away.example.com", Version: "v1", Kind: "Sample", Namespace: "ns", Name: "one"}, mayPass: true},
	} {
		t.Run(name, func(t *testing.T) {
			reader, by := newReader(t)
			found, err := reader.Find(t.Context(), tc.object)
			missing, is := IsMissing(err)
			switch {
			case tc.want != "":
				if err != nil || found.Right(tc.object).String() != tc.want {
					t.Errorf("%s: %v (%v), want %s", tc.reason, found, err, tc.want)
				}
			case tc.mayPass:
				if err == nil || is {
					t.Errorf("%s: %v, want an error that may pass", tc.reason, err)
				}
			case !is || !strings.Contains(missing.Detail, tc.missing) || missing.Kind != tc.kind:
				t.Errorf("%s: %+v (%v), want %q", tc.reason, missing, err, tc.missing)
			}
			if tc.notAsked && len(by.asked) > 0 {
				t.Errorf("%s: the cluster was asked %v", tc.reason, by.asked)
			}
		})
	}
}

// TestValue: Value returns the value of a variable, or the reason why it has none. A reason
// contains no value.
func TestValue(t *testing.T) {
	field := func(name, path string) imagetemplate.Variable {
		return imagetemplate.Variable{Field: &imagetemplate.Field{Object: imagetemplate.Object{Group: "example.com", Version: "v1", Kind: "Sample", Namespace: "ns", Name: name}, Path: path}}
	}
	for name, tc := range map[string]struct {
		variable imagetemplate.Variable
		want     string
		missing  string
		mayPass  bool
	}{
		"Version":   {variable: imagetemplate.Variable{Kube: imagetemplate.KubeMinor}, want: "36"},
		"Field":     {variable: field("one", "{.spec.tag}"), want: "v7"},
		"NoField":   {variable: field("one", "{.spec.other}"), missing: "leads to nothing"},
		"Map":       {variable: field("map", "{.spec.tag}"), missing: "leads to a map"},
		"Hostile":   {variable: field("hostile", "{.spec.tag}"), missing: "cannot be part of a reference"},
		"NoObject":  {variable: field("missing", "{.spec.tag}"), missing: "there is no Sample.example.com/v1 ns/missing"},
		"Forbidden": {variable: field("forbidden", "{.spec.tag}"), missing: "there is no right to get samples.example.com ns/forbidden"},
		"Away":      {variable: field("away", "{.spec.tag}"), mayPass: true},
	} {
		t.Run(name, func(t *testing.T) {
			reader, _ := newReader(t)
			got, err := reader.Value(t.Context(), tc.variable)
			missing, is := IsMissing(err)
			if got != tc.want || (err == nil) != (tc.want != "") || is != (tc.missing != "") || is && !strings.Contains(missing.Detail, tc.missing) || tc.mayPass && err == nil {
				t.Errorf("it is %q (%v), want %q, %q", got, err, tc.want, tc.missing)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error has the value: %s", err)
			}
		})
	}
}
