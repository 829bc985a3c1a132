package client

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// MayPass reports whether the same request, sent again after a moment, may pass: the server was
// busy, away or too slow, or says itself that it should be (Status.Details.RetryAfterSeconds).
func MayPass(err error) bool {
	_, delayed := apierrors.SuggestsClientDelay(err)
	return delayed || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}
