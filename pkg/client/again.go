package client

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// MayPass reports whether a repeated request may succeed: the server was busy, unavailable or too
// slow, or requests a retry (Status.Details.RetryAfterSeconds).
func MayPass(err error) bool {
	_, delayed := apierrors.SuggestsClientDelay(err)
	return delayed || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}
