// Package chainversion connects two steps: checking a change of a chain's revisions, and writing
// it.
//
// The effect of a change depends on the chain's other revisions. For example, an object that
// another revision also has stays, so the user needs no right to delete it. So a change must be
// written only to the chain state that was checked. Each chain has a key that is written in the
// same etcd transaction as every change of its records. The transaction requires that the key has
// not changed since the check began. Of two changes that were checked at the same time, one is
// written, and the other is checked again.
//
// The check first reads the key (ChainVersions.Get), then the records, both linearizable. It then
// records the version (Precondition.Made). The writer (Client) compares the version.
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

// Get returns etcd's revision of the last change of a chain's revisions, or 0 if there was none.
// Records that are read afterwards are at least as new.
func (s *ChainVersions) Get(ctx context.Context, chain string) (int64, error) {
	found, err := store.Get(ctx, s.kv, s.keys.ChainVersion(chain))
	if err != nil {
		return 0, fmt.Errorf("reading the state of extension %q: %w", chain, err)
	}
	return found.ModRevision, nil
}

// ChangedError reports that the revisions of a chain changed while a change was checked against
// them. Nothing was written.
type ChangedError struct{ Chain string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the revisions of %s changed while this change was checked against them", e.Chain)
}

// Precondition holds the judged state of a chain. It is valid for one write. The storage may try
// that write several times, because it begins with the cached record.
type Precondition struct {
	mu    sync.Mutex
	chain string
	at    int64
	state state
	// packs are the roots of the packs of the record.
	packs []string
	// beside is the record that changes in the same transaction; nil for none.
	beside *store.CompanionWrite
}

type state int

const (
	// open allows no write. It applies before Made, after the write, and when the chain has
	// changed.
	open state = iota
	// made allows one write that compares the version.
	made
	// waived allows one write that does not compare the version.
	waived
	// apart allows all writes: they belong to no chain, or affect no check.
	apart
)

type preconditionKey struct{}

// With returns a context in which revisions are written only if their chain is unchanged since the
// check.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{})
}

// Counting returns a context for one unconditional write to a chain. The write changes the chain
// version, so that concurrent checks start again.
func Counting(ctx context.Context, chain string) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{chain: chain, state: waived})
}

// Referring returns a context for writes that belong to no chain, or that affect no check, such as
// writes of status. They only require that the packs of the record exist (see Refers).
func Referring(ctx context.Context) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &Precondition{state: apart})
}

// Accompany sets the record that changes in the transaction of the next write; nil means none. Made
// removes it. A nil receiver does nothing.
func (p *Precondition) Accompany(record *store.CompanionWrite) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside = record
}

// Refers sets the packs of the next write's record. If a pack is collected, the write fails with a
// *store.CollectedError. A nil receiver does nothing.
func (p *Precondition) Refers(roots ...string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packs = roots
}

// From returns the precondition for writes with a context. It is nil for writes that affect no
// check.
func From(ctx context.Context) *Precondition {
	p, _ := ctx.Value(preconditionKey{}).(*Precondition)
	return p
}

// Made records that the next write was judged against a version of the chain, from
// ChainVersions.Get.
func (p *Precondition) Made(chain string, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chain, p.at, p.state, p.beside = chain, at, made, nil
}

// begin returns the basis of one write.
func (p *Precondition) begin() (basis, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == open {
		return basis{}, &ChangedError{Chain: p.chain}
	}
	return basis{chain: p.chain, at: p.at, compare: p.state == made, apart: p.state == apart, packs: p.packs, beside: p.beside}, nil
}

type basis struct {
	chain string
	// at is the required version of the chain, if compare is true.
	at      int64
	compare bool
	// apart is true if the write belongs to no chain.
	apart  bool
	packs  []string
	beside *store.CompanionWrite
}

// spend ends the precondition, after its write or because it no longer holds.
func (p *Precondition) spend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != apart {
		p.state = open
	}
}
