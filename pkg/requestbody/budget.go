package requestbody

import (
	"bytes"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/fairshare"
)

const (
	// DefaultBudget is the memory in bytes that request bodies may take together while they are
	// read, decoded and held.
	DefaultBudget = 256 << 20

	// freeBytes is the length up to which a body of a user needs no share of the budget:
	// somebody who archives a broken revision must not be turned away because
	// others upload large ones. How many of these come at a time is bounded by the
	// server's limits on requests in flight; the worst of them takes 2 MiB.
	freeBytes = 16 << 10

	// overdraft is the factor by which a single body may exceed the budget; such a body is read
	// alone. The largest revision sent by client-side kubectl apply has its content twice, and
	// needs about one and a half budgets.
	overdraft = 2

	// readFactor is the number of copies of a body in memory while it is read: one in a growing
	// buffer and one in the previous buffer. Two copies of the largest body take half of the
	// budget, which is the share of one user.
	readFactor = 2

	// unfinished bounds the bodies that are being received. Each of them occupies a seat of API
	// Priority and Fairness. The priority level of ordinary users (global-default) has 49 seats, so
	// slow bodies leave some free.
	unfinished = 48
	// placeWait is the time that a body waits for its turn when many bodies are being received. A
	// body that is sent at network speed is read long before.
	placeWait = time.Second

	// busyRetrySeconds is the value of Retry-After, in seconds.
	busyRetrySeconds = 1
)

// Budget bounds the memory of all request bodies of this process that are being
// read, decoded or held. It is shared by all requests.
type Budget struct {
	memory *fairshare.Pool
	// places for bodies on their way in; nil for as many as there are.
	places *fairshare.Pool
	// free is the length up to which a body needs no memory of the budget.
	free int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{memory: fairshare.NewPool(bytes), places: fairshare.NewPool(unfinished), free: freeBytes}
}

// NewMemoryBudget returns a budget that bounds only the memory, in bytes, and only for bodies
// longer than free. It is for an endpoint that must always answer small bodies.
func NewMemoryBudget(bytes, free int64) *Budget {
	return &Budget{memory: fairshare.NewPool(bytes), free: free}
}

// begin waits for a body of a user to have its turn to be read. Call done when it is
// there. The error is the answer for the client.
func (b *Budget) begin(ctx context.Context, user string) (done func(), err error) {
	if b == nil || b.places == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	if err := b.places.Take(ctx, user, 1); err != nil {
		return nil, apierrors.NewTooManyRequests("too many bodies of your requests are incomplete: finish sending these first", busyRetrySeconds)
	}
	return func() { b.places.Return(user, 1) }, nil
}

// Share returns an empty share for a body of a user. A nil budget has no bounds.
func (b *Budget) Share(user string) *Share { return &Share{budget: b, user: user} }

// Share is a reserved part of a budget, for one goroutine. The zero value has no bounds.
type Share struct {
	budget *Budget
	user   string
	weight int64
	// free is set for a small body, which needs no share.
	free bool
}

// read makes the share as large as a buffer of so many bytes needs. A user has half of the
// budget at most, and less when others have some: a body may never come to its end. The
// error is the answer for the client.
func (s *Share) read(buffer int64) error {
	if s.budget == nil || buffer <= s.budget.free+bytes.MinRead {
		return nil
	}
	// However long it may get, it must be possible to send it.
	more := min(buffer*readFactor, s.budget.memory.Size()/2) - s.weight
	if more <= 0 {
		return nil
	}
	if !s.budget.memory.TryTake(s.user, more) {
		return busy()
	}
	s.weight += more
	return nil
}

// Set sets the share to a number of bytes for a received body, without waiting. A body that needs
// more than the whole budget gets all of it, so that it can be processed alone, up to a limit
// (overdraft). The errors are answers for the client.
func (s *Share) Set(bytes int64) error {
	if s.budget == nil || s.free {
		return nil
	}
	size := s.budget.memory.Size()
	if bytes > overdraft*size {
		return apierrors.NewRequestEntityTooLargeError("it has too many values: decoding it would take more memory than the server has for requests")
	}
	weight := min(bytes, size)
	if weight > s.weight && !s.budget.memory.TryTakeAlone(s.user, s.weight, weight-s.weight) {
		return busy()
	}
	if weight < s.weight {
		s.budget.memory.Return(s.user, s.weight-weight)
	}
	s.weight = weight
	return nil
}

// GiveBack returns the whole share. A second call does nothing.
func (s *Share) GiveBack() {
	if s.budget != nil {
		s.budget.memory.Return(s.user, s.weight)
		s.weight = 0
	}
}

func busy() error {
	return apierrors.NewTooManyRequests("the server is busy with other large requests: try again", busyRetrySeconds)
}
