package pack

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// reservationSeconds is the time that a reservation outlives a process that died. A running
	// process renews it three times in that time.
	reservationSeconds = 60
	// releaseTimeout bounds the release of a reservation. A reservation that is not released
	// expires.
	releaseTimeout = 2 * time.Second
)

// Leases grants leases of etcd. clientv3.Lease implements it.
type Leases interface {
	Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error)
	KeepAlive(ctx context.Context, lease clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error)
	Revoke(ctx context.Context, lease clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
}

type reservationKey struct{}

// Reserve returns a context in which every stored pack is kept until release, even without a
// reference. It is for operations that are too long to start again, such as an import. Without a
// reservation, or after it expired while the process was suspended, a writer gets an error if a
// pack was collected (see store.Referable).
func (s *Store) Reserve(ctx context.Context, leases Leases) (reserved context.Context, release func(), err error) {
	lease, err := leases.Grant(ctx, reservationSeconds)
	if err != nil {
		return nil, nil, fmt.Errorf("reserving packs: %w", err)
	}
	renewing, stop := context.WithCancel(ctx)
	end := func() {
		stop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		// A lease that is not revoked expires.
		_, _ = leases.Revoke(ctx, lease.ID)
	}
	renewed, err := leases.KeepAlive(renewing, lease.ID)
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("reserving packs: %w", err)
	}
	go func() {
		for range renewed { //revive:disable-line:empty-block the channel has to be read
		}
	}()
	return context.WithValue(ctx, reservationKey{}, lease.ID), end, nil
}

// reserve reserves the pack if the context has a reservation. It is called before the pack is read:
// a pack that the caller then reads stays as long as the reservation.
func (s *Store) reserve(ctx context.Context, root string) error {
	lease, ok := ctx.Value(reservationKey{}).(clientv3.LeaseID)
	if !ok {
		return nil
	}
	if _, err := s.kv.Put(ctx, s.keys.Reservation(root, int64(lease)), "", clientv3.WithLease(lease)); err != nil {
		return fmt.Errorf("reserving pack %s: %w", root, err)
	}
	return nil
}

// keep removes the candidate key of a pack, so that the collector keeps the pack. It returns false
// if another writer changed the pack meanwhile.
func (s *Store) keep(ctx context.Context, root string, modRevision int64) (bool, error) {
	key := s.keys.Candidate(root)
	found, err := s.kv.Get(ctx, key, clientv3.WithKeysOnly())
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return true, nil
	}
	done, err := s.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.keys.Pack(root)), "=", modRevision)).
		Then(clientv3.OpDelete(key)).
		Commit()
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", key, err)
	}
	return done.Succeeded, nil
}
