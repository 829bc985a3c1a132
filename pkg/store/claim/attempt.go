package claim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// leaseSeconds is the lifetime of the claim of an unwritten record. There is one write between
	// Acquire and Settle.
	leaseSeconds = 30
	// settleTimeout bounds the steps after a write, when its request may have ended.
	settleTimeout = 10 * time.Second
)

// Gone reports whether a holder will never act again: its record does not exist, or reports that it
// has ended. Gone must read without a cache. After an error the answer is unknown, and the claim
// stays with its holder.
type Gone func(ctx context.Context, holder string) (bool, error)

// Attempt is one request that writes a record which needs a claim. The claim decides, not the
// record: before a caller acts for a record, it checks with Claims.Acquire that the record holds
// the claim.
//
//	attempt := claims.Attempt(profile, dryRun, gone)
//	created, err := store.Create(…, func(…) error { …; return attempt.Acquire(ctx, uid) }, …)
//	err = attempt.Settle(ctx, err)
//
// Acquire is the last step before the record is written, so a refused request claims nothing. Until
// Settle, the claim has a lease, so a process that dies in between leaves no claim. No other
// process can take the claim of a record that is about to be written.
type Attempt struct {
	claims *Claims
	key    string
	dryRun bool
	gone   Gone
	// holder is the holder of the acquired claim, or empty.
	holder string
}

// Attempt prepares a request. A dry-run returns the same errors, and changes nothing.
func (c *Claims) Attempt(key string, dryRun bool, gone Gone) *Attempt {
	return &Attempt{claims: c, key: key, dryRun: dryRun, gone: gone}
}

// Acquire gives the key to holder, and replaces a holder that is gone. If another holder exists,
// the error is a *HeldError. A holder identifies one record for ever, like its uid; a name could be
// used again. Repeated calls for the same holder are allowed.
func (a *Attempt) Acquire(ctx context.Context, holder string) error {
	if err := validate(a.key, holder); err != nil {
		return err
	}
	for {
		done, err := a.acquire(ctx, holder)
		if err == nil && !done {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("acquiring claim %q: %w", a.key, err)
		}
		if done {
			return nil
		}
	}
}

// acquire makes one attempt. It returns false if another writer was faster.
func (a *Attempt) acquire(ctx context.Context, holder string) (bool, error) {
	present, err := a.claims.get(ctx, a.key)
	if err != nil {
		return false, err
	}
	if present.holder != holder {
		if err := a.free(ctx, present); err != nil {
			return false, err
		}
	}
	if a.dryRun {
		return true, nil
	}
	if present.holder == holder {
		a.holder = holder
		return true, nil
	}
	lease, err := a.claims.kv.Grant(ctx, leaseSeconds)
	if err != nil {
		return false, fmt.Errorf("asking for a lease: %w", err)
	}
	// The previous holder cannot come back, so comparing the claim's last write suffices.
	done, err := a.claims.put(ctx, a.claims.keys.Claim(a.key), holder, present.modRevision, lease.ID)
	if done || err != nil {
		// After an error, it is unknown whether the claim is held.
		a.holder = holder
	}
	return done, err
}

// free returns nil if the claim has no holder, or if its holder is gone.
func (a *Attempt) free(ctx context.Context, present record) error {
	if present.holder == "" {
		return nil
	}
	if present.pending {
		return present.by(a.key)
	}
	gone, err := a.gone(ctx, present.holder)
	switch {
	case err != nil:
		return fmt.Errorf("%w; whether that one is gone is not known: %w", present.by(a.key), err)
	case !gone:
		return present.by(a.key)
	default:
		return nil
	}
}

// Settle completes the attempt after the write. It makes the claim of a written record permanent,
// and releases the claim of an unwritten record. After an error such as a timeout, it reads whether
// the record was written.
//
// Settle returns the given error. Without one, it returns a *HeldError if the lease had expired and
// another holder has the claim: the caller must delete the record. Any other error means that the
// record exists, but its claim is uncertain. The next caller that acts for the record checks the
// claim.
func (a *Attempt) Settle(ctx context.Context, failed error) error {
	if a.holder == "" {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if failed == nil {
		return a.claims.Acquire(ctx, a.key, a.holder)
	}
	gone, err := a.gone(ctx, a.holder)
	switch {
	case err != nil:
		// The claim ends with its lease.
	case gone:
		err = a.claims.Release(ctx, a.key, a.holder)
	default:
		err = a.claims.Acquire(ctx, a.key, a.holder)
	}
	if other := (*HeldError)(nil); err != nil && !errors.As(err, &other) {
		return fmt.Errorf("%w (and its claim of %q is not settled: %w)", failed, a.key, err)
	}
	return failed
}
