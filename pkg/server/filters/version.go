package filters

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// WithVersion adds a header with the program's version to every answer below the paths of the
// groups, including discovery and errors. Clients see only the host's /version, but kube-apiserver
// forwards headers. The filter must be behind authentication and authorization, so that only
// authorized users see the version.
func WithVersion(next http.Handler, groups sets.Set[string], version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if group, below := strings.CutPrefix(r.URL.Path, "/apis/"); below {
			group, _, _ = strings.Cut(group, "/")
			if groups.Has(group) {
				w.Header().Set(v1alpha1.VersionHeader, version)
			}
		}
		next.ServeHTTP(w, r)
	})
}
