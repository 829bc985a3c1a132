package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestStoresSayWhatTheServerSays: the check repeats the message of the Status, which says what to do.
func TestStoresSayWhatTheServerSays(t *testing.T) {
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
	for _, result := range (&installation{client: client}).stores(t.Context()) {
		if result.State != Failed || !strings.Contains(result.Found, "the store is older than its witness") {
			t.Errorf("%s: %s, %s", result.Name, result.State, result.Found)
		}
	}
}
