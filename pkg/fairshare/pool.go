// Package fairshare divides a fixed amount of memory or places among users. A user never takes more
// than remains free for others.
package fairshare

import (
	"context"
	"slices"
	"sync"
)

// Pool is an amount that users take in parts and return.
//
// After taking, a user never has more than is still free. The first user gets at most half of a
// pool, and the next user at most half of the rest. Users who take and return continuously converge
// to equal parts. The pool withdraws nothing: if many users take their maximum in turn and keep it,
// little is left.
type Pool struct {
	size int64

	mu    sync.Mutex
	used  int64
	users map[string]int64
	// waiting holds the waiting requests of each user, oldest first.
	waiting map[string][]*waiter
	order   []string
}

// waiter is a request that waits for an amount. The channel is closed when the request has the
// amount.
type waiter struct {
	amount int64
	served chan struct{}
}

// NewPool returns a pool of a size, in any unit.
func NewPool(size int64) *Pool {
	return &Pool{size: size, users: map[string]int64{}, waiting: map[string][]*waiter{}}
}

// Size returns the size of the pool.
func (p *Pool) Size() int64 { return p.size }

// TryTake takes an amount for a user without waiting, and reports whether the user got it.
func (p *Pool) TryTake(user string, amount int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.may(user, amount) {
		return false
	}
	p.give(user, amount)
	return true
}

// TryTakeAlone works like TryTake, but the only user may take the whole pool. has is the amount
// that the caller already has.
func (p *Pool) TryTakeAlone(user string, has, amount int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	alone := p.used == has && has+amount <= p.size
	if !alone && !p.may(user, amount) {
		return false
	}
	p.give(user, amount)
	return true
}

// Take waits until the user may take the amount. It returns the context's error if ctx ends first.
// Users are served in turn. A user who has nothing is served at once, even beyond the size of the
// pool. Take is for places, of which every user needs one.
func (p *Pool) Take(ctx context.Context, user string, amount int64) error {
	w := p.enqueue(user, amount)
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
		p.leave(user, w)
		return ctx.Err()
	}
}

// Return returns an amount of a user to the pool.
func (p *Pool) Return(user string, amount int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= amount
	if p.users[user] -= amount; p.users[user] == 0 {
		delete(p.users, user)
	}
	p.serve()
}

// may reports whether a user may take an additional amount.
func (p *Pool) may(user string, amount int64) bool {
	return p.users[user]+amount <= p.size-p.used-amount
}

func (p *Pool) give(user string, amount int64) {
	p.used += amount
	p.users[user] += amount
}

func (p *Pool) enqueue(user string, amount int64) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &waiter{amount: amount, served: make(chan struct{})}
	// A user with waiting requests is in the order already.
	if len(p.waiting[user]) == 0 {
		p.order = append(p.order, user)
	}
	p.waiting[user] = append(p.waiting[user], w)
	p.serve()
	return w
}

// leave removes a waiting request. If the request was served at the last moment, leave returns its
// amount.
func (p *Pool) leave(user string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting[user], w); i >= 0 {
		p.waiting[user] = slices.Delete(p.waiting[user], i, i+1)
		if len(p.waiting[user]) == 0 {
			p.forget(user)
		}
		return
	}
	p.used -= w.amount
	if p.users[user] -= w.amount; p.users[user] == 0 {
		delete(p.users, user)
	}
	p.serve()
}

func (p *Pool) forget(user string) {
	delete(p.waiting, user)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == user })
}

// serve serves waiting requests, the users in turn, while their amounts are allowed.
func (p *Pool) serve() {
	for {
		next := slices.IndexFunc(p.order, func(user string) bool {
			return p.users[user] == 0 || p.may(user, p.waiting[user][0].amount)
		})
		if next < 0 {
			return
		}
		user := p.order[next]
		w := p.waiting[user][0]
		p.give(user, w.amount)
		close(w.served)
		p.waiting[user] = p.waiting[user][1:]
		p.order = slices.Delete(p.order, next, next+1)
		if len(p.waiting[user]) > 0 {
			p.order = append(p.order, user)
		} else {
			delete(p.waiting, user)
		}
	}
}
