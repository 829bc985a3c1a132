// Package claim records the single holder of a key, such as the plan that holds a profile. A holder
// keeps its claim until it releases it. Another holder may take it after reading that the first
// holder no longer exists. A claim never expires.
//
// Only a claim of a record that is still being written has a lease (see Attempt), so a crash leaves
// no claim.
package claim

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

const maxHolderBytes = 1024

// KV is the part of an etcd client that claims need. *clientv3.Client implements it.
type KV interface {
	clientv3.KV
	// Grant creates a lease of some seconds.
	Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error)
}

// Claims acquires, hands over and releases claims.
type Claims struct {
	kv   KV
	keys store.Keys
	// unreadable collects unreadable claims; nil collects none.
	unreadable *store.Unreadable
}

// New returns the claims below an etcd prefix.
func New(kv KV, prefix string) *Claims {
	return &Claims{kv: kv, keys: store.NewKeys(prefix)}
}

// Noting sets the collection of unreadable claims. It returns the same claims.
func (c *Claims) Noting(unreadable *store.Unreadable) *Claims {
	c.unreadable = unreadable
	return c
}

// HeldError reports that another holder has a claim.
type HeldError struct {
	Key, Holder string
	// Pending is true while the holder's record is being written, which may fail.
	Pending bool
}

func (e *HeldError) Error() string {
	if e.Pending {
		return fmt.Sprintf("%q is held by %q, which is being created", e.Key, e.Holder)
	}
	return fmt.Sprintf("%q is held by %q", e.Key, e.Holder)
}

func format() store.Format {
	return store.Format{Kind: "claim", Magic: "PKC", Version: 1, Limit: maxHolderBytes}
}

type record struct {
	// holder is empty for a free key.
	holder string
	// pending is true while the claim has a lease.
	pending     bool
	modRevision int64
}

// by returns the error for other holders.
func (h record) by(key string) error {
	return &HeldError{Key: key, Holder: h.holder, Pending: h.pending}
}

// Acquire gives the key to holder permanently; holder may already have it. If another holder has
// it, the error is a *HeldError.
func (c *Claims) Acquire(ctx context.Context, key, holder string) error {
	if err := validate(key, holder); err != nil {
		return err
	}
	return c.change(ctx, key, "acquiring", func(present record) (string, error) {
		if present.holder != "" && present.holder != holder {
			return "", present.by(key)
		}
		return holder, nil
	})
}

// TakeOver moves the key from one holder to another. The caller has read that the old holder does
// not exist, or that the requester may replace it. If the new holder already has the key, TakeOver
// succeeds. If a third holder has it, the error is a *HeldError. A free key is an error too.
func (c *Claims) TakeOver(ctx context.Context, key, from, to string) error {
	if err := errors.Join(validate(key, from), validate(key, to)); err != nil {
		return err
	}
	return c.change(ctx, key, "taking over", func(present record) (string, error) {
		switch present.holder {
		case from, to:
			return to, nil
		case "":
			return "", fmt.Errorf("%q does not hold it any more, and nobody else does: acquire it", from)
		default:
			return "", present.by(key)
		}
	})
}

// Release frees the key if holder has it. A free key is no error; with another holder the error is
// a *HeldError.
func (c *Claims) Release(ctx context.Context, key, holder string) error {
	if err := validate(key, holder); err != nil {
		return err
	}
	return c.change(ctx, key, "releasing", func(present record) (string, error) {
		if present.holder != "" && present.holder != holder {
			return "", present.by(key)
		}
		return "", nil
	})
}

// Holder returns the holder of the key, or empty.
func (c *Claims) Holder(ctx context.Context, key string) (string, error) {
	present, err := c.get(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading claim %q: %w", key, err)
	}
	return present.holder, nil
}

// change sets the holder to the result of next for the current claim; an empty result frees the
// key. It starts again if another writer was faster.
func (c *Claims) change(ctx context.Context, key, doing string, next func(present record) (string, error)) error {
	for {
		done, err := c.attempt(ctx, key, next)
		if err == nil && !done {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s claim %q: %w", doing, key, err)
		}
		if done {
			return nil
		}
	}
}

func (c *Claims) attempt(ctx context.Context, key string, next func(record) (string, error)) (bool, error) {
	present, err := c.get(ctx, key)
	if err != nil {
		return false, err
	}
	holder, err := next(present)
	if err != nil || holder == present.holder && !present.pending {
		return err == nil, err
	}
	etcdKey := c.keys.Claim(key)
	if holder == "" {
		return c.remove(ctx, etcdKey, present.modRevision)
	}
	return c.put(ctx, etcdKey, holder, present.modRevision, clientv3.NoLease)
}

// put writes a claim if its last write was at modRevision, and reports whether it did.
func (c *Claims) put(ctx context.Context, etcdKey, holder string, modRevision int64, lease clientv3.LeaseID) (bool, error) {
	record, err := format().Wrap([]byte(holder))
	if err != nil {
		return false, err
	}
	response, err := c.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(etcdKey), "=", modRevision)).
		Then(clientv3.OpPut(etcdKey, string(record), clientv3.WithLease(lease))).
		Commit()
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", etcdKey, err)
	}
	return response.Succeeded, nil
}

// remove deletes a claim if its last write was at modRevision, and reports whether it did.
func (c *Claims) remove(ctx context.Context, etcdKey string, modRevision int64) (bool, error) {
	response, err := c.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(etcdKey), "=", modRevision)).
		Then(clientv3.OpDelete(etcdKey)).
		Commit()
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", etcdKey, err)
	}
	return response.Succeeded, nil
}

func (c *Claims) get(ctx context.Context, key string) (record, error) {
	etcdKey := c.keys.Claim(key)
	response, err := c.kv.Get(ctx, etcdKey)
	if err != nil {
		return record{}, fmt.Errorf("reading %s: %w", etcdKey, err)
	}
	if len(response.Kvs) == 0 {
		return record{}, nil
	}
	return c.decode(response.Kvs[0])
}

func (c *Claims) decode(stored *mvccpb.KeyValue) (record, error) {
	found, err := decode(stored)
	return found, c.unreadable.Told(string(stored.Key), stored.Value, err)
}

// Verify returns the error of a damaged record of a claim.
func Verify(key string, record []byte) error {
	_, err := decode(&mvccpb.KeyValue{Key: []byte(key), Value: record})
	return err
}

func decode(stored *mvccpb.KeyValue) (record, error) {
	holder, err := format().Unwrap(string(stored.Key), stored.Value)
	if err != nil {
		return record{}, err
	}
	if len(holder) == 0 {
		return record{}, format().Damaged(string(stored.Key), errors.New("it names no holder"))
	}
	return record{holder: string(holder), pending: stored.Lease != 0, modRevision: stored.ModRevision}, nil
}

func validate(key, holder string) error {
	if key == "" {
		return errors.New("a claim needs a key")
	}
	if holder == "" || len(holder) > maxHolderBytes {
		return fmt.Errorf("claim %q: the holder's name has %d bytes, want 1 to %d", key, len(holder), maxHolderBytes)
	}
	return nil
}
