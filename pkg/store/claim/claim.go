// Package claim keeps who holds what only one may hold, such as a profile by a
// plan. A claim has no lease: it is held until it is released, or until somebody
// who read that its holder is gone takes it over.
package claim

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// maxHolderBytes bounds the name of a holder.
const maxHolderBytes = 1024

// Claims acquires, hands over and releases claims.
type Claims struct {
	kv   clientv3.KV
	keys store.Keys
}

// New returns the claims below an etcd prefix.
func New(kv clientv3.KV, prefix string) *Claims {
	return &Claims{kv: kv, keys: store.NewKeys(prefix)}
}

// HeldError says that somebody else holds a claim.
type HeldError struct {
	Key, Holder string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%q is held by %q", e.Key, e.Holder)
}

func format() store.Format {
	return store.Format{Kind: "claim", Magic: "PKC", Version: 1}
}

// Acquire makes holder the one that holds the key, which he may do already. When
// it is somebody else, the error is a *HeldError.
func (c *Claims) Acquire(ctx context.Context, key, holder string) error {
	if err := validate(key, holder); err != nil {
		return err
	}
	return c.change(ctx, key, "acquiring", func(present string) (string, error) {
		if present != "" && present != holder {
			return "", &HeldError{Key: key, Holder: present}
		}
		return holder, nil
	})
}

// TakeOver makes to the holder in place of from, whom the caller has read to be
// gone. It is done already when to holds the key; when that is somebody else, or
// nobody, nothing changes, and the error is a *HeldError, or says so.
func (c *Claims) TakeOver(ctx context.Context, key, from, to string) error {
	if err := errors.Join(validate(key, from), validate(key, to)); err != nil {
		return err
	}
	return c.change(ctx, key, "taking over", func(present string) (string, error) {
		switch present {
		case from, to:
			return to, nil
		case "":
			return "", fmt.Errorf("%q does not hold it any more, and nobody else does: acquire it", from)
		default:
			return "", &HeldError{Key: key, Holder: present}
		}
	})
}

// Release gives the key free if holder holds it. When nobody does, that is done
// already; when it is somebody else, the error is a *HeldError.
func (c *Claims) Release(ctx context.Context, key, holder string) error {
	if err := validate(key, holder); err != nil {
		return err
	}
	return c.change(ctx, key, "releasing", func(present string) (string, error) {
		if present != "" && present != holder {
			return "", &HeldError{Key: key, Holder: present}
		}
		return "", nil
	})
}

// Holder returns who holds the key; empty for nobody.
func (c *Claims) Holder(ctx context.Context, key string) (string, error) {
	holder, _, err := c.get(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading claim %q: %w", key, err)
	}
	return holder, nil
}

// change makes the holder what next returns for the present one, where empty is
// nobody. It starts over when another writer was faster.
func (c *Claims) change(ctx context.Context, key, doing string, next func(present string) (string, error)) error {
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

func (c *Claims) attempt(ctx context.Context, key string, next func(string) (string, error)) (bool, error) {
	present, modRevision, err := c.get(ctx, key)
	if err != nil {
		return false, err
	}
	holder, err := next(present)
	if err != nil || holder == present {
		return err == nil, err
	}
	if holder == "" {
		return c.remove(ctx, key, modRevision)
	}
	_, done, err := store.Swap(ctx, c.kv, c.keys.Claim(key), format().Wrap([]byte(holder)), modRevision)
	return done, err
}

func (c *Claims) remove(ctx context.Context, key string, modRevision int64) (bool, error) {
	etcdKey := c.keys.Claim(key)
	response, err := c.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(etcdKey), "=", modRevision)).
		Then(clientv3.OpDelete(etcdKey)).
		Commit()
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", etcdKey, err)
	}
	return response.Succeeded, nil
}

func (c *Claims) get(ctx context.Context, key string) (string, int64, error) {
	etcdKey := c.keys.Claim(key)
	stored, err := store.Get(ctx, c.kv, etcdKey)
	if err != nil || !stored.Exists() {
		return "", 0, err
	}
	holder, err := format().Unwrap(etcdKey, stored.Bytes)
	if err != nil {
		return "", 0, err
	}
	if len(holder) == 0 {
		return "", 0, format().Damaged(etcdKey, errors.New("it names no holder"))
	}
	return string(holder), stored.ModRevision, nil
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
