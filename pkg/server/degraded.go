package server

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// withDegraded answers every request for a resource of the groups with 503 and
// the reason, while a reason is given. Everything else goes on: without our
// discovery no namespace of the cluster could be deleted, and a 404 for a
// revision that we merely cannot find would make the garbage collector delete
// what belongs to it.
//
// There is no Retry-After in the answer: clients would hold back, for minutes,
// the message that a person should read.
func withDegraded(next http.Handler, reason string, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	if reason == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || !groups.Has(info.APIGroup) {
			next.ServeHTTP(w, r)
			return
		}
		version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
		responsewriters.ErrorNegotiated(apierrors.NewServiceUnavailable(reason), codecs, version, w, r)
	})
}
