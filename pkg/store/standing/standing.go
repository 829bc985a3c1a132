// Package standing joins two steps: checking a change of a chain's revisions, and
// writing it.
//
// What a change of one revision comes to depends on the others of its chain: an object
// that another revision has too stays, so nobody is asked for the right to delete it.
// The invariant is therefore: what a change was judged by is how the chain stands when
// the change is written. Its key, one for each chain, is written in the same etcd
// transaction as every change of a record of the chain, and that transaction demands
// that it was written last when the judge began to look. Of two changes that were judged
// at the same time one is written, and the other one is judged again.
//
// Whoever judges reads the key first (Standings.Get), then the records, both
// linearizable, and says so (Judgement.Made). Whoever writes (Client) compares.
package standing

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Standings reads how chains stand.
type Standings struct {
	kv   clientv3.KV
	keys store.Keys
}

// New returns the standings below an etcd prefix.
func New(kv clientv3.KV, prefix string) *Standings {
	return &Standings{kv: kv, keys: store.NewKeys(prefix)}
}

// Get returns etcd's revision of the last change of a chain's revisions, 0 when none was
// counted. Records that are read after it are at least as new.
func (s *Standings) Get(ctx context.Context, chain string) (int64, error) {
	found, err := store.Get(ctx, s.kv, s.keys.Standing(chain))
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

// Judgement is what the writes of one request rest on. It is good for one write,
// tried as often as it takes while the chain stands as it did: the storage begins with the
// record as a cache has it.
type Judgement struct {
	mu    sync.Mutex
	chain string
	at    int64
	state state
	// packs are the roots of those that the record will refer to.
	packs []string
	// beside is what changes with the record, nil for nothing.
	beside *store.Beside
}

// state of a judgement.
type state int

const (
	// open is before a judgement was made, after its write, and when the chain stands
	// otherwise: nothing can be written.
	open state = iota
	// made lets one write through that is compared.
	made
	// waived lets one write through that is compared with nothing.
	waived
	// apart lets all writes through: they belong to no chain, or nobody is judged by them.
	apart
)

type judgementKey struct{}

// With returns a context in which revisions are written only as they were judged.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, judgementKey{}, &Judgement{})
}

// Counting returns a context for one write to a chain that needs no judgement by what
// else is written there, and makes the judgements of others that were made before it
// void.
func Counting(ctx context.Context, chain string) context.Context {
	return context.WithValue(ctx, judgementKey{}, &Judgement{chain: chain, state: waived})
}

// Referring returns a context for writes that belong to no chain, or by which nothing in it
// is judged, such as those of status. They are compared with the packs that the record comes
// to refer to (see Refers).
func Referring(ctx context.Context) context.Context {
	return context.WithValue(ctx, judgementKey{}, &Judgement{state: apart})
}

// Beside has a record changed in the transaction of the next write, in place of one that was
// named before; nil changes none. Another judgement forgets it. It does nothing on a nil
// receiver.
func (j *Judgement) Beside(record *store.Beside) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.beside = record
}

// Refers notes the packs that the record comes to refer to by the next write, in place of
// those that were noted before: it is written only while nothing has collected them.
// Otherwise the error is a *store.CollectedError. It does nothing on a nil receiver.
func (j *Judgement) Refers(roots ...string) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.packs = roots
}

// From returns what the writes of a context rest on, nil for writes that change nothing
// that others are judged by.
func From(ctx context.Context) *Judgement {
	j, _ := ctx.Value(judgementKey{}).(*Judgement)
	return j
}

// Made notes that the next write is judged by the chain as it stood at a revision of
// etcd, as Standings.Get has it.
func (j *Judgement) Made(chain string, at int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.chain, j.at, j.state, j.beside = chain, at, made, nil
}

// begin hands the judgement out to one write. With compare the chain must stand as it
// did at that revision.
func (j *Judgement) begin() (basis, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == open {
		return basis{}, &ChangedError{Chain: j.chain}
	}
	return basis{chain: j.chain, at: j.at, compare: j.state == made, apart: j.state == apart, packs: j.packs, beside: j.beside}, nil
}

// basis is what one write rests on.
type basis struct {
	chain string
	// at is how the chain must stand, with compare.
	at      int64
	compare bool
	// apart tells that there is no chain.
	apart  bool
	packs  []string
	beside *store.Beside
}

// spend ends the judgement: it was written by, or is void.
func (j *Judgement) spend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state != apart {
		j.state = open
	}
}
