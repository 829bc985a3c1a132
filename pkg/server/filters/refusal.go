// Package filters has shared handlers for requests.
package filters

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// WithRefusal calls refuse for each request for a resource of the groups, before any other handler.
// If refuse returns an error, it is the answer. Other requests, such as discovery and health
// checks, pass.
func WithRefusal(next http.Handler, groups sets.Set[string], codecs runtime.NegotiatedSerializer,
	refuse func(info *request.RequestInfo, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || !groups.Has(info.APIGroup) {
			next.ServeHTTP(w, r)
			return
		}
		err := refuse(info, r)
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
		responsewriters.ErrorNegotiated(err, codecs, version, w, r)
	})
}
