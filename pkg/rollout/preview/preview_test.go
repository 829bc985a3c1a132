package preview

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

func TestSilent(t *testing.T) {
	status := func(code int) error {
		return fmt.Errorf("reading: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code)}})
	}
	silents := []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway}
	for _, code := range []int{400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504} {
		if got := silent(status(code)); got != slices.Contains(silents, code) {
			t.Errorf("%d: silent is %t", code, got)
		}
	}
	if silent(&targetclient.KindUnknownError{}) || silent(&targetclient.ScopeError{}) {
		t.Error("that a kind is not served, or has no namespace, is an answer")
	}
	if !silent(errors.New("connection refused")) {
		t.Error("no answer is none")
	}
}
