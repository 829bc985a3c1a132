package clusterextensionrevision

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreFull returns the answer to a write for which etcd has no space: 507. A 503 would ask clients
// to try again soon, and a 500 would report a defect. There is no Retry-After, so that clients do
// not wait but show the error to the user.
func StoreFull() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInsufficientStorage,
		Reason: "InsufficientStorage",
		Message: "the store is full: etcd has reached its quota and accepts no writes, not even deletions, which are writes, too. " +
			"Reads still work, and installed objects stay as they are. What to do: give etcd a larger quota (--data-quota, " +
			"or --quota-backend-bytes of an external etcd), or make room in an external etcd (compact, defrag, alarm disarm); " +
			"Penstock notices it within seconds and continues by itself",
	}}
}
