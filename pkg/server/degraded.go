package server

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
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
	return withRefusal(next, groups, codecs, func(*request.RequestInfo, *http.Request) error {
		return apierrors.NewServiceUnavailable(reason)
	})
}
