package requestbody

import (
	"bytes"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/fairshare"
)

const (
	// DefaultBudget is the memory that request bodies may take at a time while
	// they are read, decoded and held, in bytes.
	DefaultBudget = 256 << 20

	// freeBytes is the length up to which a body of a user needs no share of the budget:
	// somebody who archives a broken revision must not be turned away because
	// others upload large ones. How many of these come at a time is bounded by the
	// server's limits on requests in flight; the worst of them takes 2 MiB.
	freeBytes = 16 << 10

	// overdraft is how many budgets a single body may need: it passes alone.
	// The largest revision sent by client-side kubectl apply, which carries it
	// twice, needs about one and a half.
	overdraft = 2

	// readFactor is how often the text of a body is there while it is read: in a
	// buffer that grows, and in the one before. Two of it are half of the budget for the
	// largest body, which is what a user may have.
	readFactor = 2

	// unfinished is how many bodies may be on their way in at a time. A client that sends
	// them occupies a place of priority and fairness with each, of which the level of
	// ordinary users (global-default) has 49: slow bodies leave some of these.
	unfinished = 48
	// placeWait is how long a body waits to be read when many others are on their way.
	// A body at the speed of a network is read long before.
	placeWait = time.Second

	// busyRetrySeconds is when somebody who was sent away may come again.
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

// NewMemoryBudget returns a budget that bounds only the memory, in bytes, and only of bodies
// that are longer than free: for an endpoint that must answer the small ones in any case.
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

// Share returns the share of a body of a user, of which nothing has come yet. A nil
// budget has no bounds.
func (b *Budget) Share(user string) *Share { return &Share{budget: b, user: user} }

// Share is a reserved part of a budget. It belongs to one goroutine. The zero value
// has no bounds.
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

// Set makes the share as large as what needs so many bytes, without waiting, for a body
// that is here. A body that needs more than the whole budget gets all of it, so that it can pass
// alone; what needs far more can never pass. The errors are answers for the client.
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

// GiveBack returns all of it. A second time does nothing.
func (s *Share) GiveBack() {
	if s.budget != nil {
		s.budget.memory.Return(s.user, s.weight)
		s.weight = 0
	}
}

func busy() error {
	return apierrors.NewTooManyRequests("the server is busy with other large requests: try again", busyRetrySeconds)
}
