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

// WithDegraded answers every request for a resource of the groups with 503 and
// the reason, while a reason is given. Everything else goes on: without our
// discovery no namespace of the cluster could be deleted, and a 404 for a
// revision that we merely cannot find would make the garbage collector delete
// what belongs to it.
//
// There is no Retry-After in the answer: clients would hold back, for minutes,
// the message that a person should read.
func WithDegraded(next http.Handler, reason string, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	if reason == "" {
		return next
	}
	return filters.WithRefusal(next, groups, codecs, func(*request.RequestInfo, *http.Request) error {
		return apierrors.NewServiceUnavailable(reason)
	})
}

// CheckName is the name of the readiness check that fails while we are
// degraded. A kubelet's probe leaves it out (/readyz?exclude=store-identity), or
// the Service publishes addresses that are not ready: a Service without endpoints would take
// discovery away, and that is what degraded mode is there to avoid.
const CheckName = "store-identity"

// Check tells the truth about the store: reason is why we are degraded, or empty, and
// down why it does not run.
func Check(reason string, down func() error) healthz.HealthChecker {
	return healthz.NamedCheck(CheckName, func(*http.Request) error {
		if reason != "" {
			return errors.New(reason)
		}
		return down()
	})
}
