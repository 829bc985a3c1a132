package clusterextensionrevision

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreFull answers a write that etcd has no room for: 507, because 503 would say that
// trying again soon is of use, and 500 that something is broken. Clients that wait for
// a Retry-After find none, so that a person gets to read it.
func StoreFull() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInsufficientStorage,
		Reason: "InsufficientStorage",
		Message: "the store is full: etcd has reached its quota and accepts no writes, not even deletions, which are writes, too. " +
			"Reads go on, and nothing that is installed is touched. What to do: give etcd a larger quota (--data-quota, " +
			"or --quota-backend-bytes of an external etcd), or make room in an external etcd (compact, defrag, alarm disarm); " +
			"Penstock notices it within seconds and continues by itself",
	}}
}
