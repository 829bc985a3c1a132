package storeguard

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/server/filters"
)

// DownError reports that the embedded etcd does not run.
type DownError struct {
	// Reason is the error with which etcd ended.
	Reason error
}

// Error implements error.
func (e *DownError) Error() string { return "the embedded etcd does not run: " + e.Reason.Error() }

// Unwrap returns the reason.
func (e *DownError) Unwrap() error { return e.Reason }

// healing ends an advice that needs no further action.
const healing = "Penstock notices it within seconds and continues by itself"

const downAdvice = "make room on the volume of --data-dir if it has none, make it writable, or see docs/operations/failure-modes.md for what the reason says"

// WithDown answers requests for resources of the groups with 503 while down returns a *DownError.
// Otherwise they would wait for etcd until they time out. Open watches continue.
func WithDown(next http.Handler, down func() error, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	return filters.WithRefusal(next, groups, codecs, func(*request.RequestInfo, *http.Request) error { return Refusal(down) })
}

// Refusal returns that answer, or nil while down returns no *DownError.
func Refusal(down func() error) error {
	var stopped *DownError
	if errors.As(down(), &stopped) {
		return apierrors.NewServiceUnavailable(DegradedMessage(stopped.Error(), downAdvice+"; "+healing))
	}
	return nil
}
