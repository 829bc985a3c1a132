package client_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// TestServerVersion: the version is from the last answer with a version, including errors.
func TestServerVersion(t *testing.T) {
	answers := []string{"", "v1.2.3", "", "v1.3.0"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers[0] != "" {
			w.Header().Set("Penstock-Version", answers[0])
		}
		answers = answers[1:]
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	var version client.ServerVersion
	version.Listen(config)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "v1.2.3", "v1.2.3", "v1.3.0"} {
		if _, err := clients.OlmV1alpha1().ClusterExtensionRevisions().Get(t.Context(), "argocd-1", metav1.GetOptions{}); err == nil {
			t.Fatal("the server answered")
		}
		if got := version.Get(); got != want {
			t.Errorf("after %d answers the version is %q, want %q", i+1, got, want)
		}
	}
}
