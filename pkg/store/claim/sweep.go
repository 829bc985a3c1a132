package claim

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-project/penstock/pkg/store"
)

// sweepPage bounds the claims in one read.
const sweepPage = 500

// Sweep releases the claims of holders that do not exist any more, and returns the number of
// released claims. It continues after errors, and returns them joined. Claims of records that are
// being written stay.
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

// sweep releases one claim, whose holder does not exist any more, if the claim is unchanged since
// it was read.
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
