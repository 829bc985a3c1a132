package clusterreads

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/server/host"
)

// serving answers GETs of paths with objects. Other paths are not found. Without any objects, all
// paths are forbidden.
func serving(t *testing.T, objects map[string]string) *hostReads {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if body, ok := objects[r.URL.Path]; ok {
			_, _ = w.Write([]byte(body))
			return
		}
		code, reason := http.StatusNotFound, metav1.StatusReasonNotFound
		if objects == nil {
			code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}))
	t.Cleanup(server.Close)
	h, err := host.New(kubeconfigFor(t, server.Listener.Addr().String()), "v1")
	if err != nil {
		t.Fatal(err)
	}
	reads, err := newHostReads(h, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reads
}

func TestGeneration(t *testing.T) {
	extension := map[string]string{"/apis/olm.operatorframework.io/v1/clusterextensions/argocd": `{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"argocd","uid":"u","generation":7}}`}
	owner := func(version, kind, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "argocd", UID: types.UID(uid)}
	}
	cases := map[string]struct {
		reason string
		host   map[string]string
		owner  metav1.OwnerReference
		want   int64
		fails  bool
	}{
		"Found":       {reason: "its generation", host: extension, owner: owner("olm.operatorframework.io/v1", "ClusterExtension", "u"), want: 7},
		"Recreated":   {reason: "another one of the same name has another count", host: extension, owner: owner("olm.operatorframework.io/v1", "ClusterExtension", "ux"), fails: true},
		"Gone":        {reason: "nobody is no generation", host: map[string]string{}, owner: owner("olm.operatorframework.io/v1", "ClusterExtension", "u"), fails: true},
		"Forbidden":   {reason: "no answer is no generation", owner: owner("olm.operatorframework.io/v1", "ClusterExtension", "u"), fails: true},
		"AnotherKind": {reason: "it makes no revisions", host: extension, owner: owner("v1", "ConfigMap", "u"), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := serving(t, tc.host).Generation(t.Context(), tc.owner)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: got %d, error %v", tc.reason, got, err)
			}
		})
	}
}

func TestStoredVersions(t *testing.T) {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.io"
	definition := func(status string) map[string]string {
		return map[string]string{path: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.x.io"},"status":` + status + `}`}
	}
	cases := map[string]struct {
		reason string
		host   map[string]string
		want   []string
		fails  bool
	}{
		"Some":      {reason: "as the host says", host: definition(`{"storedVersions":["v1","v2"]}`), want: []string{"v1", "v2"}},
		"NoKind":    {reason: "nothing is stored of a kind that is not there", host: map[string]string{}},
		"Forbidden": {reason: "no answer is not nothing", fails: true},
		"Strange":   {reason: "what cannot be read is not nothing", host: definition(`{"storedVersions":"v1"}`), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := serving(t, tc.host).StoredVersions(t.Context(), "", "things.x.io")
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func kubeconfigFor(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: c, cluster: {server: \"http://" + address + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
