package filters

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// WithVersion names the version of the program in every answer to a request below the
// paths of the groups, discovery and errors among them: /version is the host's, and
// kube-apiserver passes headers of answers on. Behind authentication and authorization it
// is told to nobody who cannot ask.
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
