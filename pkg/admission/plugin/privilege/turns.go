package privilege

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// userConcurrency is the number of requests of one user that are checked at the same time.
	// Their checks share the limit of all users (see inquiry).
	userConcurrency = 4
	// userWaiting is the number of further requests of one user that may wait.
	userWaiting      = 64
	busyRetrySeconds = 2
)

// turns limit the concurrent requests of each user. A user with more requests waits, and other
// users do not.
type turns struct {
	mu sync.Mutex
	// users that have requests now.
	users map[string]*turn
}

// turn is the shared state of one user's requests.
type turn struct {
	// requests that are being checked or wait.
	requests int
	judging  chan struct{}
}

// take waits until a request of a user can be checked. Call done after the check.
func (t *turns) take(ctx context.Context, user string) (done func(), err error) {
	mine, err := t.enter(user)
	if err != nil {
		return nil, err
	}
	select {
	case mine.judging <- struct{}{}:
		return func() {
			<-mine.judging
			t.leave(user)
		}, nil
	case <-ctx.Done():
		t.leave(user)
		return nil, ctx.Err()
	}
}

func (t *turns) enter(user string) (*turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.users[user]
	if mine == nil {
		mine = &turn{judging: make(chan struct{}, userConcurrency)}
		t.users[user] = mine
	}
	if mine.requests >= userConcurrency+userWaiting {
		return nil, apierrors.NewTooManyRequests("too many of your requests are waiting for a check of your rights", busyRetrySeconds)
	}
	mine.requests++
	return mine, nil
}

func (t *turns) leave(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.users[user]
	if mine.requests--; mine.requests == 0 {
		delete(t.users, user)
	}
}
