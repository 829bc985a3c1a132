package storeguard

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/penstock-project/penstock/pkg/server/filters"
)

// WithDegraded answers every request for a resource of the groups with 503 and the reason, unless
// the reason is empty. Other requests pass: without our discovery, no namespace of the cluster
// could be deleted. The answer must not be a 404, or the garbage collector would delete the
// dependents of the revision.
//
// The answer has no Retry-After, because clients would then retry for minutes before they show the
// message.
func WithDegraded(next http.Handler, reason string, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	if reason == "" {
		return next
	}
	return filters.WithRefusal(next, groups, codecs, func(*request.RequestInfo, *http.Request) error {
		return apierrors.NewServiceUnavailable(reason)
	})
}

// CheckName is the name of the readiness check that fails while the store is degraded. A kubelet's
// probe must exclude it (/readyz?exclude=store-identity), or the Service must publish unready
// addresses. Otherwise the Service has no endpoints, and discovery fails.
const CheckName = "store-identity"

// Check returns the health check of the store. It fails with reason if reason is set. Otherwise it
// fails with the error of down, the reason why the store does not run.
func Check(reason string, down func() error) healthz.HealthChecker {
	return healthz.NamedCheck(CheckName, func(*http.Request) error {
		if reason != "" {
			return errors.New(reason)
		}
		return down()
	})
}
