package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// objectsAtOnce bounds the objects of all running previews: one revision of the largest size,
	// or 300 of the usual size. Several of the largest size at once would all time out.
	objectsAtOnce = 4000
	// maxWait is the time that a preview waits for running previews.
	maxWait = 10 * time.Second
	// retrySeconds is the value of Retry-After, in seconds.
	retrySeconds = 5
)

// queue admits previews while there is room for their objects. A small preview does not wait behind
// a large preview that has no room.
type queue struct {
	mu   sync.Mutex
	free int
	// left is closed when a preview leaves.
	left chan struct{}
}

func newQueue() *queue {
	return &queue{free: objectsAtOnce, left: make(chan struct{})}
}

// enter waits until there is room for a number of objects. leave releases it.
func (q *queue) enter(ctx context.Context, objects int) (leave func(), err error) {
	objects = min(max(objects, 1), objectsAtOnce)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		left, ok := q.take(objects)
		if ok {
			return func() { q.give(objects) }, nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
				"the cluster is being asked what other rollouts would change, for at most %d objects at once; try again, or select fewer objects with objectKind, objectNamespace or objectName",
				objectsAtOnce), retrySeconds)
		}
	}
}

// take takes room if it is free. Otherwise it returns a channel that is closed when the caller
// should try again.
func (q *queue) take(objects int) (left <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free < objects {
		return q.left, false
	}
	q.free -= objects
	return nil, true
}

func (q *queue) give(objects int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free += objects
	close(q.left)
	q.left = make(chan struct{})
}
