package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
)

// TestWatchesAreNotCompressed: each compressed watch would keep a decompressor, for the host and
// for each target cluster. Other requests may be compressed.
func TestWatchesAreNotCompressed(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"SecretList","metadata":{},"items":[]}`))
	}))
	t.Cleanup(server.Close)
	link := kubeconfig.NewLink()
	if err := link.Lead(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"host": {Host: server.URL}, "target": link.Config()} {
		client, err := kubernetes.NewForConfig(component(config, "test"))
		if err != nil {
			t.Fatal(err)
		}
		secrets := client.CoreV1().Secrets("penstock")
		if _, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := <-asked; got != "gzip" {
			t.Errorf("%s: a list asks for the encoding %q, want gzip", name, got)
		}
		watching, err := secrets.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		watching.Stop()
		if got := <-asked; got != "identity" {
			t.Errorf("%s: a watch asks for the encoding %q, want identity", name, got)
		}
	}
}
