package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestSaysWhatTheServerSays: every check repeats the message of the Status, which has the next
// step.
func TestSaysWhatTheServerSays(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the store is older than its witness: start with --accept-identity","reason":"ServiceUnavailable","code":503}`))
	}))
	t.Cleanup(front.Close)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: front.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{client: client, services: map[string]*apiService{}}
	for _, c := range checks() {
		if c.name == "certificate" || c.name == "version" {
			continue // these send no request
		}
		// The Service is known only from a readable APIService.
		found := &apiService{}
		found.Spec.Service = &struct {
			Namespace, Name string
			Port            int
		}{"penstock-system", "penstock", 443}
		in.services[v1alpha1.GroupName] = found
		for _, result := range c.run(in, t.Context()) {
			if !strings.Contains(result.Found, "the store is older than its witness") {
				t.Errorf("%s: %s, %s", result.Name, result.State, result.Found)
			}
		}
	}
}
