package claim

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-project/penstock/pkg/store"
)

// sweepPage is how many claims are read at a time at most.
const sweepPage = 500

// Sweep gives the claims free whose holders are gone, and returns how many. It goes
// on after what it cannot find out or read, and returns that as its error. Records
// that are being written keep theirs.
func (c *Claims) Sweep(ctx context.Context, gone Gone) (freed int, err error) {
	var errs []error
	claims := store.Below(c.keys.Claims())
	claims.Most = sweepPage
	err = claims.Each(ctx, c.kv, func(found *mvccpb.KeyValue) error {
		done, err := c.sweep(ctx, found, gone)
		if err != nil {
			errs = append(errs, err)
		}
		if done {
			freed++
		}
		return nil
	})
	return freed, errors.Join(append(errs, err)...)
}

// sweep gives one claim free if nobody has written it since it was read.
func (c *Claims) sweep(ctx context.Context, found *mvccpb.KeyValue, gone Gone) (bool, error) {
	present, err := c.decode(found)
	if err != nil || present.pending {
		return false, err
	}
	is, err := gone(ctx, present.holder)
	if err != nil {
		return false, fmt.Errorf("finding out whether %q, who holds %s, is gone: %w", present.holder, found.Key, err)
	}
	if !is {
		return false, nil
	}
	return c.remove(ctx, string(found.Key), present.modRevision)
}
