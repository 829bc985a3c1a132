package maker

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// retryFirst and retryMax bound the time between two attempts.
const (
	retryFirst = 500 * time.Millisecond
	retryMax   = 5 * time.Minute
)

// Queue holds the names of objects that need a pass.
type Queue = workqueue.TypedRateLimitingInterface[string]

// NewQueue returns an empty queue.
func NewQueue(clock clock.WithTicker) Queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryMax), workqueue.TypedRateLimitingQueueConfig[string]{Clock: clock})
}

// Work runs passes until the queue is shut down. It logs complaint for passes that fail.
func Work(ctx context.Context, queue Queue, pass func(context.Context, string) error, complaint string) {
	for Next(ctx, queue, pass, complaint) {
	}
}

// Next runs one pass, and returns false if the queue is shut down.
func Next(ctx context.Context, queue Queue, pass func(context.Context, string) error, complaint string) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	err := pass(ctx, key)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ErrRendering):
		// A pass without a failure does not reset the back-off.
	case errors.Is(err, ErrAgain), apierrors.IsConflict(err):
		queue.AddRateLimited(key)
	case err != nil:
		klog.FromContext(ctx).Error(err, complaint, "object", key)
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
	}
	return true
}
