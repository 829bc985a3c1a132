package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
)

// BenchmarkStatus runs kubectl penstock status with 1,000 extensions.
func BenchmarkStatus(b *testing.B) {
	const extensions = 1000
	recorded, err := os.ReadFile("testdata/recorded/revisions.json")
	if err != nil {
		b.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(recorded, &list); err != nil {
		b.Fatal(err)
	}
	var all []string
	for n := range extensions {
		name := fmt.Sprintf("lighthouse%d", n)
		for _, one := range list.Items {
			if strings.Contains(string(one), `"lighthouse-3"`) {
				all = append(all, strings.ReplaceAll(string(one), "lighthouse", name))
			}
		}
	}
	if len(all) != extensions {
		b.Fatalf("%d revisions", len(all))
	}
	answer := []byte(`{"kind":"ClusterExtensionRevisionList","apiVersion":"olm.operatorframework.io/v1alpha1","metadata":{},"items":[` + strings.Join(all, ",") + "]}")
	server := plugintest.New(b, "testdata/recorded")
	others := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/clusterextensionrevisions") {
			others.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
	for b.Loop() {
		if stdout, stderr, code := run(b, server, 160, nil, "status"); code != 0 || !strings.Contains(stdout, "lighthouse999") {
			b.Fatalf("exit %d: %s", code, stderr)
		}
	}
}
