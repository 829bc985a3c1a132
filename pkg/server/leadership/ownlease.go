package leadership

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLease distinguishes its process from another process with the same identity. All processes of
// one embedded store have the same identity, so a new process takes over the lease of its
// predecessor. The predecessor may still live: on a node that was cut off or suspended, or with a
// copy of the store. It then finds a renewal in the lease that it did not write, and treats the
// holder as another process.
//
// The elector uses a lock from one goroutine at a time, and electors follow each other.
type ownLease struct {
	resourcelock.Interface
	writes *ownWrites
}

const storePrefix = "store_"

// StoreIdentity returns the identity of the process that serves an embedded store.
func StoreIdentity(storeID string) string { return storePrefix + storeID }

func isStore(identity string) bool { return strings.HasPrefix(identity, storePrefix) }

// ownWrites holds the renewal times that this process has written, in microseconds like the lease:
// the last acknowledged time, and later attempts.
type ownWrites struct {
	acknowledged int64
	attempted    map[int64]bool
}

// Get returns the record of the lease. If another process with our identity holds the lease, Get
// changes the holder in the record. Get recognises such a process by a renewal time that this
// process has not written.
func (l ownLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case l.writes.acknowledged == 0 && isStore(l.Identity()) && isStore(record.HolderIdentity):
		// Another embedded store had this cluster before. The witness names our store now, so we
		// need not wait for the old lease.
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

// Create creates the lease and records the renewal time.
func (l ownLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.attempt(record.RenewTime.UnixMicro())
	return l.writes.note(record.RenewTime.UnixMicro(), l.Interface.Create(ctx, record))
}

// Update updates the lease and records the renewal time.
func (l ownLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.attempt(record.RenewTime.UnixMicro())
	return l.writes.note(record.RenewTime.UnixMicro(), l.Interface.Update(ctx, record))
}

// include is true for the renewals of this process, and for all renewals before its first
// acknowledged write.
func (w *ownWrites) include(renewed int64) bool {
	return w.acknowledged == 0 || renewed == w.acknowledged || w.attempted[renewed]
}

// attempt records a write before it is sent, because its answer may be lost.
func (w *ownWrites) attempt(renewed int64) {
	if w.attempted == nil {
		w.attempted = map[int64]bool{}
	}
	w.attempted[renewed] = true
}

// note returns err, the result of a write. After a success it drops older writes.
func (w *ownWrites) note(renewed int64, err error) error {
	if err == nil {
		w.acknowledged = renewed
		clear(w.attempted)
	}
	return err
}
