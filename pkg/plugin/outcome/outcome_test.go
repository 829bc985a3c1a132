package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOf(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   Code
	}{
		"nothing":     {"it holds", nil, OK},
		"own":         {"who knows better says so", fmt.Errorf("x: %w", Errorf(No, "y")), No},
		"quiet":       {"everything was said", Quiet(No), No},
		"interrupted": {"a person stopped it", fmt.Errorf("x: %w", context.Canceled), Interrupted},
		"late":        {"it took too long", context.DeadlineExceeded, TimedOut},
		"conflict":    {"somebody was faster", fmt.Errorf("x: %w", apierrors.NewConflict(resource, "a", errors.New("b"))), Conflict},
		"exists":      {"somebody was faster", apierrors.NewAlreadyExists(resource, "a"), Conflict},
		"forbidden":   {"it cannot be found out", apierrors.NewForbidden(resource, "a", nil), Unknown},
		"missing":     {"it cannot be found out", apierrors.NewNotFound(resource, "a"), Unknown},
		"usage":       {"anything else cannot either", errors.New("no such flag"), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.err); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
