package claim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

var (
	errRefused = errors.New("validation says no")
	errTimeout = errors.New("the store did not answer")
)

// registry is an API server of records that need a claim. It runs the steps of a request.
type registry struct {
	kv     KV
	claims *Claims
	prefix string
}

func newRegistry(kv KV, prefix string) *registry {
	return &registry{kv: kv, claims: New(kv, prefix), prefix: prefix}
}

func (r *registry) record(holder string) string { return r.prefix + "/records/" + holder }

func (r *registry) gone(ctx context.Context, holder string) (bool, error) {
	found, err := r.kv.Get(ctx, r.record(holder))
	return err == nil && len(found.Kvs) == 0, err
}

type request struct {
	holder          string
	dryRun, refused bool
	// lost makes the write of the record fail; unwritten makes the request fail before it.
	lost, unwritten bool
}

func (r *registry) create(ctx context.Context, q request) error {
	attempt := r.claims.Attempt("key", q.dryRun, r.gone)
	err := attempt.Settle(ctx, r.write(ctx, q, attempt))
	if held := (*HeldError)(nil); errors.As(err, &held) {
		// The record was not written, or must be deleted.
		if _, err := r.kv.Delete(ctx, r.record(q.holder)); err != nil {
			return err
		}
	}
	return err
}

func (r *registry) write(ctx context.Context, q request, attempt *Attempt) error {
	if q.refused {
		return errRefused
	}
	if err := attempt.Acquire(ctx, q.holder); err != nil || q.dryRun {
		return err
	}
	if q.unwritten {
		return errTimeout
	}
	if _, err := r.kv.Put(ctx, r.record(q.holder), "there"); err != nil {
		return err
	}
	if q.lost {
		return errTimeout
	}
	return nil
}

// holder returns the holder, and fails the test if it cannot be read.
func (r *registry) holder(t *testing.T) string {
	t.Helper()
	holder, err := r.claims.Holder(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return holder
}

func expire(t *testing.T, client *clientv3.Client) {
	t.Helper()
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Leases {
		if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAttempt(t *testing.T) {
	client := storetest.Client(t)
	held := func(err error) bool { return errors.As(err, new(*HeldError)) }
	none := func(err error) bool { return err == nil }
	for name, tc := range map[string]struct {
		reason string
		before []request
		// deleted are records that were deleted without releasing their claims.
		deleted []string
		request request
		is      func(error) bool
		holder  string
	}{
		"Created":    {reason: "free", request: request{holder: "a"}, is: none, holder: "a"},
		"Held":       {reason: "one at a time", before: []request{{holder: "a"}}, request: request{holder: "b"}, is: held, holder: "a"},
		"DryRun":     {reason: "it would work, and nothing is claimed", request: request{holder: "a", dryRun: true}, is: none},
		"DryRunHeld": {reason: "it would not", before: []request{{holder: "a"}}, request: request{holder: "b", dryRun: true}, is: held, holder: "a"},
		"DryRunGone": {reason: "it would take over, and does not", before: []request{{holder: "a"}}, deleted: []string{"a"}, request: request{holder: "b", dryRun: true}, is: none, holder: "a"},
		"Refused":    {reason: "nothing is claimed", request: request{holder: "a", refused: true}, is: func(err error) bool { return errors.Is(err, errRefused) }},
		"Unwritten":  {reason: "the claim is given back", request: request{holder: "a", unwritten: true}, is: func(err error) bool { return errors.Is(err, errTimeout) }},
		"Lost":       {reason: "an error, and it was written all the same", request: request{holder: "a", lost: true}, is: func(err error) bool { return errors.Is(err, errTimeout) }, holder: "a"},
		"Gone":       {reason: "the holder was deleted", before: []request{{holder: "a"}}, deleted: []string{"a"}, request: request{holder: "b"}, is: none, holder: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(client, "/"+name)
			for _, before := range tc.before {
				if err := r.create(t.Context(), before); err != nil {
					t.Fatal(err)
				}
			}
			for _, holder := range tc.deleted {
				if _, err := client.Delete(t.Context(), r.record(holder)); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.create(t.Context(), tc.request); !tc.is(err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			expire(t, client) // a settled claim stays
			if got := r.holder(t); got != tc.holder {
				t.Errorf("%s: %q holds it, want %q", tc.reason, got, tc.holder)
			}
		})
	}
}

// TestAttemptUnknown: if Gone returns an error, the claim stays with its holder.
func TestAttemptUnknown(t *testing.T) {
	r := newRegistry(storetest.Client(t), "/p")
	if err := r.claims.Acquire(t.Context(), "key", "a"); err != nil {
		t.Fatal(err)
	}
	unknown := errors.New("the store does not answer")
	ask := func(context.Context, string) (bool, error) { return true, unknown }
	err := r.claims.Attempt("key", false, ask).Acquire(t.Context(), "b")
	if !errors.Is(err, unknown) || !errors.As(err, new(*HeldError)) {
		t.Errorf("acquiring: %v", err)
	}
	if freed, err := r.claims.Sweep(t.Context(), ask); freed != 0 || !errors.Is(err, unknown) {
		t.Errorf("sweeping: %d, %v", freed, err)
	}
	if got := r.holder(t); got != "a" {
		t.Errorf("%q holds it", got)
	}
}

// TestAttemptStaleReading: a claim is not taken from a holder that wrote its record after the read.
func TestAttemptStaleReading(t *testing.T) {
	for name, take := range map[string]func(*registry, Gone) error{
		"Acquire": func(r *registry, gone Gone) error {
			return r.claims.Attempt("key", false, gone).Acquire(context.Background(), "b")
		},
		"Sweep": func(r *registry, gone Gone) error { _, err := r.claims.Sweep(context.Background(), gone); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(storetest.Client(t), "/p")
			if err := r.create(t.Context(), request{holder: "gone"}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.kv.Delete(t.Context(), r.record("gone")); err != nil {
				t.Fatal(err)
			}
			first := true
			err := take(r, func(ctx context.Context, holder string) (bool, error) {
				gone, err := r.gone(ctx, holder)
				if first && err == nil {
					// The write happens after the answer and before its use.
					first, err = false, r.create(ctx, request{holder: "a"})
				}
				return gone, err
			})
			if name == "Acquire" && !errors.As(err, new(*HeldError)) || name == "Sweep" && err != nil {
				t.Errorf("error %v", err)
			}
			if got := r.holder(t); got != "a" {
				t.Errorf("%q holds it", got)
			}
		})
	}
}

// TestAttemptCrash: if a create dies at any point, both the record and its claim exist, or neither.
// The next create works unless the record exists.
func TestAttemptCrash(t *testing.T) {
	client := storetest.Client(t)
	// The writes are the lease, the claim, the record and the permanent claim.
	const writes = 4
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		for n := range writes + 1 {
			t.Run(fmt.Sprintf("%d %s", n, how), func(t *testing.T) {
				prefix := fmt.Sprintf("/%d%s", n, strings.ReplaceAll(string(how), " ", "-"))
				dying, r := newRegistry(storetest.NewCrashingKV(client, n, how), prefix), newRegistry(client, prefix)
				err := dying.create(t.Context(), request{holder: "a"})
				if (err != nil) != (n < writes) {
					t.Fatalf("the create: error %v; has it another number of writes than %d?", err, writes)
				}
				gone, err := r.gone(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				expire(t, client)
				if holder := r.holder(t); holder != "" && gone {
					t.Errorf("a claim of %q is left behind", holder)
				}
				if !gone {
					// The record's controller acquires the claim first or second; in both cases one
					// holder acts.
					if err := r.claims.Acquire(t.Context(), "key", "a"); err != nil {
						t.Errorf("the record that is there does not get its claim: %v", err)
					}
				}
				if err := r.create(t.Context(), request{holder: "b"}); (err == nil) != gone {
					t.Errorf("the next create, while the first is gone %t: %v", gone, err)
				}
			})
		}
	}
}

// TestThousandAttempts: requests of all kinds run on three replicas at the same time.
func TestThousandAttempts(t *testing.T) {
	const requests, replicas = 1000, 3
	clients := storetest.Clients(t, replicas)
	all := newRegistry(clients[0], "/p")
	var mu sync.Mutex
	var won []string
	var wait sync.WaitGroup
	begin := make(chan struct{})
	for i := range requests {
		client := clients[i%replicas]
		q := request{holder: fmt.Sprintf("uid-%04d", i)}
		kv := KV(client)
		switch i % 10 {
		case 7:
			q.dryRun = true
		case 8:
			q.refused = true
		case 9: // a replica that dies, at each point of a create
			kv = storetest.NewCrashingKV(client, i/10%4, []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite}[i/40%2])
		}
		wait.Go(func() {
			<-begin
			err := newRegistry(kv, "/p").create(t.Context(), q)
			switch {
			case err == nil && !q.dryRun:
				mu.Lock()
				defer mu.Unlock()
				won = append(won, q.holder)
			case err == nil, errors.As(err, new(*HeldError)), errors.Is(err, errRefused), errors.Is(err, storetest.ErrCrash):
			default:
				t.Errorf("%s: %v", q.holder, err)
			}
		})
	}
	close(begin)
	wait.Wait()
	expire(t, clients[0])

	holder := all.holder(t)
	found, err := clients[0].Get(t.Context(), "/p/records/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, kv := range found.Kvs {
		records = append(records, strings.TrimPrefix(string(kv.Key), "/p/records/"))
	}
	t.Logf("%v won, %q holds it, records %v", won, holder, records)
	if len(won) > 1 || len(won) == 1 && won[0] != holder {
		t.Errorf("%v were told that they have it; %q has", won, holder)
	}
	// A process that died before its claim was permanent may have left a record.
	if gone, err := all.gone(t.Context(), holder); err != nil || holder != "" && gone {
		t.Errorf("%q holds it and is not there (%v)", holder, err)
	}
	if len(won) == 0 {
		// The replica that died was the first, and blocks no other holder now.
		if err := all.create(t.Context(), request{holder: "last"}); (err == nil) != (holder == "") {
			t.Errorf("a create after all, while %q holds it: %v", holder, err)
		}
	}
	if freed, err := all.claims.Sweep(t.Context(), all.gone); freed != 0 || err != nil {
		t.Errorf("%d claims were left behind (%v)", freed, err)
	}
}

// TestSweep: Sweep releases exactly the claims of holders that do not exist any more, on all pages.
func TestSweep(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	c := New(client, "/p")
	for i := range sweepPage + 10 {
		if err := c.Acquire(ctx, fmt.Sprintf("a/%d", i), []string{"gone", "there"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(_ context.Context, holder string) (bool, error) { return holder != "there", nil }
	if err := c.Attempt("pending", false, gone).Acquire(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, c.keys.Claim("aa"), "garbage"); err != nil {
		t.Fatal(err)
	}
	freed, err := c.Sweep(ctx, gone)
	if want := (sweepPage + 10) / 2; freed != want || err == nil {
		t.Errorf("freed %d, want %d; error %v, want one about the damaged claim", freed, want, err)
	}
	for key, want := range map[string]string{"a/0": "", "a/1": "there", "a/509": "there", "pending": "gone"} {
		if holder, err := c.Holder(ctx, key); holder != want || err != nil {
			t.Errorf("%q holds %s, want %q (%v)", holder, key, want, err)
		}
	}
}
