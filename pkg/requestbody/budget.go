package requestbody

import (
	"bytes"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/fairshare"
)

const (
	// DefaultBudget is the total memory, in bytes, of all request bodies that are read, decoded or
	// held.
	DefaultBudget = 256 << 20

	// freeBytes is the largest length of a user's body that needs no share of the budget. Users
	// must be able to archive a broken revision while others upload large bodies. The server's
	// limits on requests in flight bound the number of small bodies. The worst small body takes 2
	// MiB.
	freeBytes = 16 << 10

	// overdraft is the largest size of a single body, in budgets. The server reads such a body
	// alone. The largest revision from client-side kubectl apply contains its content twice and
	// needs about 1.5 budgets.
	overdraft = 2

	// readFactor is the number of copies of a body in memory while it is read: the growing buffer
	// and the previous buffer. Two copies of the largest body take half of the budget, which is the
	// share of one user.
	readFactor = 2

	// unfinished bounds the number of bodies that are being received. Each body occupies a seat of
	// API Priority and Fairness. The priority level of ordinary users (global-default) has 49
	// seats, so slow bodies leave a seat free.
	unfinished = 48
	// placeWait is the time that a body waits for its turn when many bodies are being received. A
	// client with a fast network needs much less time to send a body.
	placeWait = time.Second

	// busyRetrySeconds is the value of Retry-After, in seconds.
	busyRetrySeconds = 1
)

// Budget bounds the memory of all request bodies that this process reads, decodes or holds. All
// requests share it.
type Budget struct {
	memory *fairshare.Pool
	// places bounds the bodies that are being received; nil means no limit.
	places *fairshare.Pool
	// free is the largest length of a body, in bytes, that needs no share of the budget.
	free int64
}

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{memory: fairshare.NewPool(bytes), places: fairshare.NewPool(unfinished), free: freeBytes}
}

// NewMemoryBudget returns a budget that bounds only memory, in bytes, and only of bodies longer
// than free. It is for an endpoint that must always answer small bodies.
func NewMemoryBudget(bytes, free int64) *Budget {
	return &Budget{memory: fairshare.NewPool(bytes), free: free}
}

// begin waits until the user's body may be read. The caller calls done after reading it. The error
// is the answer for the client.
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

// Share returns an empty share for a body of a user. A nil budget has no limits.
func (b *Budget) Share(user string) *Share { return &Share{budget: b, user: user} }

// Share is a reserved part of a budget, for one goroutine. The zero value has no limits.
type Share struct {
	budget *Budget
	user   string
	weight int64
	// free is set for a small body, which needs no share.
	free bool
}

// read enlarges the share to the need of a buffer of the given length. A user can have at most half
// of the budget, and less when other users have shares: a body might never be complete. The error
// is the answer for the client.
func (s *Share) read(buffer int64) error {
	if s.budget == nil || buffer <= s.budget.free+bytes.MinRead {
		return nil
	}
	// At most half of the budget is taken, so that a body of any length can be sent.
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
// more than the budget, up to overdraft times the budget, gets all of it and is processed alone.
// The errors are answers for the client.
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
