package clusterextensionrevision

import (
	"golang.org/x/sync/semaphore"
)

const (
	// DefaultBudget is the memory that request bodies may take at a time while
	// they are decoded and held, in bytes.
	DefaultBudget = 256 << 20

	// decodingFactor is how much memory a body takes while it is decoded, in
	// multiples of its length: the text and the tree made of it.
	decodingFactor = 4

	// freeBodyBytes is the length up to which a body needs no share of the
	// budget: somebody who archives a broken revision must not be turned away
	// because others upload large ones. How many of these come at a time is
	// bounded by the server's limits on requests in flight.
	freeBodyBytes = 64 << 10
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

// take reserves what decoding a body of so many bytes needs, without waiting:
// nil means that there is no room now. A body that needs more than the whole
// budget gets all of it, so that it can pass alone. A nil budget has no bounds.
func (b *Budget) take(bodyBytes int64) *share {
	if b == nil || bodyBytes <= freeBodyBytes {
		return &share{}
	}
	weight := min(bodyBytes*decodingFactor, b.capacity)
	if !b.weights.TryAcquire(weight) {
		return nil
	}
	return &share{budget: b, weight: weight}
}

// share is a reserved part of a budget. It belongs to one goroutine.
type share struct {
	budget *Budget
	weight int64
}

// shrink gives back what is beyond so many bytes.
func (s *share) shrink(bytes int64) {
	if s.budget == nil || bytes >= s.weight {
		return
	}
	s.budget.weights.Release(s.weight - bytes)
	s.weight = bytes
}

// giveBack returns all of it. A second time does nothing.
func (s *share) giveBack() {
	s.shrink(0)
}
