package clusterextensionrevision

import (
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// DefaultBudget is the memory that request bodies may take at a time while
	// they are decoded and held, in bytes.
	DefaultBudget = 256 << 20

	// freeBodyBytes is the length up to which a body needs no share of the
	// budget: somebody who archives a broken revision must not be turned away
	// because others upload large ones. How many of these come at a time is
	// bounded by the server's limits on requests in flight; the worst of them
	// takes 2 MiB.
	freeBodyBytes = 16 << 10

	// overdraft is how many budgets a single body may need: it passes alone.
	// The largest revision sent by client-side kubectl apply, which carries it
	// twice, needs about one and a half.
	overdraft = 2

	// busyRetrySeconds is when somebody who was sent away may come again.
	busyRetrySeconds = 1
)

// Budget bounds the memory of all request bodies of this process that are being
// decoded or held. It is shared by all requests.
type Budget struct {
	capacity int64
	weights  *semaphore.Weighted
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{capacity: bytes, weights: semaphore.NewWeighted(bytes)}
}

// take reserves a share for a body of so many bytes, without waiting: the error
// says that there is no room now. The share covers the text; what is in it is
// known only when it was read (see weigh). A nil budget has no bounds.
func (b *Budget) take(bodyBytes int64) (*share, error) {
	if b == nil || bodyBytes <= freeBodyBytes {
		return &share{}, nil
	}
	s := &share{budget: b}
	// However long it may get, it is not here yet.
	return s, s.set(min(bodyBytes*textFactor, b.capacity))
}

// share is a reserved part of a budget. It belongs to one goroutine.
type share struct {
	budget *Budget
	weight int64
}

// set makes the share as large as what needs so many bytes, without waiting. What
// needs more than the whole budget gets all of it, so that it can pass alone; what
// needs far more can never pass. The errors are answers for the client.
func (s *share) set(bytes int64) error {
	if s.budget == nil {
		return nil
	}
	if bytes > overdraft*s.budget.capacity {
		return apierrors.NewRequestEntityTooLargeError("it has too many values: decoding it would take more memory than the server has for requests")
	}
	weight := min(bytes, s.budget.capacity)
	if weight > s.weight && !s.budget.weights.TryAcquire(weight-s.weight) {
		return apierrors.NewTooManyRequests("the server is busy decoding other large requests: try again", busyRetrySeconds)
	}
	if weight < s.weight {
		s.budget.weights.Release(s.weight - weight)
	}
	s.weight = weight
	return nil
}

// giveBack returns all of it. A second time does nothing.
func (s *share) giveBack() {
	if s.budget != nil {
		s.budget.weights.Release(s.weight)
		s.weight = 0
	}
}
