// Package chainversion joins two steps: checking a change of a chain's revisions, and writing it.
//
// The effect of a change depends on the chain's other revisions: an object that another revision
// also has stays, so no right to delete it is needed. So a change must be written only to the chain
// state that was checked. Each chain has a key that is written in the same etcd transaction as
// every change of its records. The transaction requires that the key has not changed since the
// check began. Of two changes that were checked at the same time, one is written, and the other is
// checked again.
//
// The checking side first reads the key (ChainVersions.Get), then the records, both linearizable,
// and states this (Precondition.Made). The writer (Client) compares.
package chainversion

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// ChainVersions reads the versions of chains: the last change of their revisions.
type ChainVersions struct {
	kv   clientv3.KV
	keys store.Keys
}

// New returns the chain versions below an etcd prefix.
func New(kv clientv3.KV, prefix string) *ChainVersions {
	return &ChainVersions{kv: kv, keys: store.NewKeys(prefix)}
}

// Get returns etcd's revision of the last change of a chain's revisions, 0 when none was
// counted. Records that are read after it are at least as new.
func (s *ChainVersions) Get(ctx context.Context, chain string) (int64, error) {
	found, err := store.Get(ctx, s.kv, s.keys.ChainVersion(chain))
	if err != nil {
		return 0, fmt.Errorf("reading the state of extension %q: %w", chain, err)
	}
	return found.ModRevision, nil
}

// ChangedError says that the revisions of a chain changed while a change was judged by
// them, and that nothing was written.
type ChangedError struct{ Chain string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the revisions of %s changed while this change was checked against them", e.Chain)
}

// Precondition holds the state of the chain on which a request was judged. It is valid for
// one write. The storage may try that write several times, because it begins with the
// cached record.
type Precondition struct {
	mu    sync.Mutex
	chain string
	at    int64
	state state
	// packs are the roots of those that the record will refer to.
	packs []string
	// beside is the record that changes with this one, nil for none.
	beside *store.CompanionWrite
}

// state of a precondition.
type state int

const (
	// open is before a precondition was made, after its write, and when the chain stands
	// otherwise: nothing can be written.
	open state = iota
	// made lets one write through that is compared.
	made
	// waived lets one write through that is compared with nothing.
	waived
	// apart lets all writes through: they belong to no chain, or nobody is judged by them.
	apart
)

type preconditionKey struct{}

// With returns a context in which revisions are written only as they were judged.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{})
}

// Counting returns a context for one write to a chain that needs no precondition by what
// else is written there, and makes the judgements of others that were made before it
// void.
func Counting(ctx context.Context, chain string) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{chain: chain, state: waived})
}

// Referring returns a context for writes that belong to no chain, or by which nothing in it
// is judged, such as those of status. They are compared with the packs that the record comes
// to refer to (see Refers).
func Referring(ctx context.Context) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{state: apart})
}

// Accompany has a record changed in the transaction of the next write, in place of one that was
// named before; nil changes none. Another precondition forgets it. It does nothing on a nil
// receiver.
func (p *Precondition) Accompany(record *store.CompanionWrite) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside = record
}

// Refers notes the packs that the record comes to refer to by the next write, in place of
// those that were noted before: it is written only while nothing has collected them.
// Otherwise the error is a *store.CollectedError. It does nothing on a nil receiver.
func (p *Precondition) Refers(roots ...string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packs = roots
}

// From returns what the writes of a context rest on, nil for writes that change nothing
// that others are judged by.
func From(ctx context.Context) *Precondition {
	p, _ := ctx.Value(preconditionKey{}).(*Precondition)
	return p
}

// Made notes that the next write is judged by the chain as it stood at a revision of
// etcd, as ChainVersions.Get has it.
func (p *Precondition) Made(chain string, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chain, p.at, p.state, p.beside = chain, at, made, nil
}

// begin hands the precondition out to one write. With compare the chain must stand as it
// did at that revision.
func (p *Precondition) begin() (basis, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == open {
		return basis{}, &ChangedError{Chain: p.chain}
	}
	return basis{chain: p.chain, at: p.at, compare: p.state == made, apart: p.state == apart, packs: p.packs, beside: p.beside}, nil
}

// basis is the basis of one write.
type basis struct {
	chain string
	// at is how the chain must stand, with compare.
	at      int64
	compare bool
	// apart is true if there is no chain.
	apart  bool
	packs  []string
	beside *store.CompanionWrite
}

// spend ends the precondition: it was written by, or is void.
func (p *Precondition) spend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != apart {
		p.state = open
	}
}
