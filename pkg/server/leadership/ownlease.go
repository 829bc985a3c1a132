package leadership

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLease tells its process from another one with the same identity. The identity of
// an embedded store is that of the process that serves it: a process that begins takes over the
// lease of the one before it. That one may turn out to live, on a node that was cut
// off or suspended, or with a copy of the store. It then finds in the lease a renewal
// that it did not write, and takes the holder for somebody else.
//
// The elector uses a lock from one goroutine at a time, and electors follow each other.
type ownLease struct {
	resourcelock.Interface
	writes *ownWrites
}

// storePrefix is the prefix of the identities of embedded stores.
const storePrefix = "store_"

// StoreIdentity is the identity of the process that serves an embedded store.
func StoreIdentity(storeID string) string { return storePrefix + storeID }

func isStore(identity string) bool { return strings.HasPrefix(identity, storePrefix) }

// ownWrites are the renewals of this process that the lease may have, in microseconds
// as it has them: the last that was acknowledged, and those since.
type ownWrites struct {
	acknowledged int64
	attempted    map[int64]bool
}

// Get returns the record of the lease. It changes the holder if another process of our identity
// holds the lease, which shows in a renewal that this process has not written.
func (l ownLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case l.writes.acknowledged == 0 && isStore(l.Identity()) && isStore(record.HolderIdentity):
		// Another embedded store had this cluster before. The witness says that it is
		// ours now, so nobody is waited for.
		record.HolderIdentity = l.Identity()
	case record.HolderIdentity == l.Identity() && !l.writes.include(record.RenewTime.UnixMicro()):
		record.HolderIdentity += " (another process)"
	default:
		return record, raw, nil
	}
	if raw, err = json.Marshal(record); err != nil {
		return nil, nil, fmt.Errorf("reading the lease %s: %w", l.Describe(), err)
	}
	return record, raw, nil
}

// Create creates the lease and notes the renewal time.
func (l ownLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.attempt(record.RenewTime.UnixMicro())
	return l.writes.note(record.RenewTime.UnixMicro(), l.Interface.Create(ctx, record))
}

// Update updates the lease and notes the renewal time.
func (l ownLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.attempt(record.RenewTime.UnixMicro())
	return l.writes.note(record.RenewTime.UnixMicro(), l.Interface.Update(ctx, record))
}

// include is true for what this process wrote, and for everything before its first
// write was acknowledged.
func (w *ownWrites) include(renewed int64) bool {
	return w.acknowledged == 0 || renewed == w.acknowledged || w.attempted[renewed]
}

// attempt notes a write before it is sent: its answer may be lost.
func (w *ownWrites) attempt(renewed int64) {
	if w.attempted == nil {
		w.attempted = map[int64]bool{}
	}
	w.attempted[renewed] = true
}

// note returns err, the result of a write, and forgets older writes when it succeeded.
func (w *ownWrites) note(renewed int64, err error) error {
	if err == nil {
		w.acknowledged = renewed
		clear(w.attempted)
	}
	return err
}
