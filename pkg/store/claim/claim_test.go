package claim

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func TestClaims(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	type call func(c *Claims) error
	acquire := func(holder string) call { return func(c *Claims) error { return c.Acquire(ctx, "k", holder) } }
	release := func(holder string) call { return func(c *Claims) error { return c.Release(ctx, "k", holder) } }
	takeOver := func(from, to string) call { return func(c *Claims) error { return c.TakeOver(ctx, "k", from, to) } }

	cases := map[string]struct {
		reason string
		before []call
		call   call
		// holder is the holder after the call. heldBy is the holder in a *HeldError.
		holder, heldBy string
		refused        bool
	}{
		"Acquire":        {reason: "free", call: acquire("a"), holder: "a"},
		"AcquireAgain":   {reason: "the same holder may come again", before: []call{acquire("a")}, call: acquire("a"), holder: "a"},
		"AcquireHeld":    {reason: "one holder at a time", before: []call{acquire("a")}, call: acquire("b"), holder: "a", heldBy: "a"},
		"Release":        {reason: "given free", before: []call{acquire("a")}, call: release("a")},
		"ReleaseTwice":   {reason: "it is free already", before: []call{acquire("a"), release("a")}, call: release("a")},
		"ReleaseOther":   {reason: "only the holder gives it free", before: []call{acquire("a")}, call: release("b"), holder: "a", heldBy: "a"},
		"AcquireFreed":   {reason: "free again", before: []call{acquire("a"), release("a")}, call: acquire("b"), holder: "b"},
		"TakeOver":       {reason: "the holder is gone", before: []call{acquire("a")}, call: takeOver("a", "b"), holder: "b"},
		"TakeOverTwice":  {reason: "it was done already", before: []call{acquire("a"), takeOver("a", "b")}, call: takeOver("a", "b"), holder: "b"},
		"TakeOverStale":  {reason: "somebody else took it over before", before: []call{acquire("a"), takeOver("a", "c")}, call: takeOver("a", "b"), holder: "c", heldBy: "c"},
		"TakeOverNobody": {reason: "there is nothing to take over", call: takeOver("a", "b"), refused: true},
		"NoHolder":       {reason: "nobody cannot hold it", call: acquire(""), refused: true},
		"LongHolder":     {reason: "names are bounded", call: acquire(strings.Repeat("x", maxHolderBytes+1)), refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(client, "/"+name)
			for i, before := range tc.before {
				if err := before(c); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			err := tc.call(c)
			var held *HeldError
			if errors.As(err, &held) != (tc.heldBy != "") || held != nil && held.Holder != tc.heldBy {
				t.Errorf("%s: got error %v, want held by %q", tc.reason, err, tc.heldBy)
			}
			if held == nil && (err != nil) != tc.refused {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if holder, err := c.Holder(ctx, "k"); holder != tc.holder || err != nil {
				t.Errorf("%s: %q holds it, want %q, error %v", tc.reason, holder, tc.holder, err)
			}
			if holder, err := c.Holder(ctx, "other"); holder != "" || err != nil {
				t.Errorf("%s: %q holds another key, error %v", tc.reason, holder, err)
			}
		})
	}
}

func TestOneAcquires(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	c := New(client, "/p")
	for round := range 10 {
		key := fmt.Sprint("key/", round)
		var won atomic.Int32
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				err := c.Acquire(ctx, key, fmt.Sprint(i))
				var held *HeldError
				if err == nil {
					won.Add(1)
				} else if !errors.As(err, &held) {
					t.Errorf("acquire: %v", err)
				}
			})
		}
		wait.Wait()
		if won.Load() != 1 {
			t.Errorf("%d holders have acquired %s", won.Load(), key)
		}
	}
}

func TestClaimCrash(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	calls := []func(c *Claims) error{
		func(c *Claims) error { return c.Acquire(ctx, "k", "a") },
		func(c *Claims) error { return c.TakeOver(ctx, "k", "a", "b") },
		func(c *Claims) error { return c.Release(ctx, "k", "b") },
	}
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		for writes := range calls {
			prefix := fmt.Sprintf("/%d%s", writes, strings.ReplaceAll(string(how), " ", "-"))
			dying, after := New(storetest.NewCrashingKV(client, writes, how), prefix), New(client, prefix)
			for i, call := range calls {
				err := call(dying)
				if (err != nil) != (i >= writes) {
					t.Fatalf("crash at write %d %s: call %d got error %v", writes, how, i, err)
				}
			}
			for i, call := range calls[writes:] {
				if err := call(after); err != nil {
					t.Errorf("crash at write %d %s: repeating call %d: %v", writes, how, writes+i, err)
				}
			}
			if holder, err := after.Holder(ctx, "k"); holder != "" || err != nil {
				t.Errorf("crash at write %d %s: %q holds it, error %v", writes, how, holder, err)
			}
		}
	}
}

func TestClaimDamage(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	c := New(client, "/p")
	for _, value := range []string{"", "garbage", "PKC\x01"} {
		if _, err := client.Put(ctx, c.keys.Claim("k"), value); err != nil {
			t.Fatal(err)
		}
		var damaged *store.DamagedError
		if err := c.Acquire(ctx, "k", "a"); !errors.As(err, &damaged) {
			t.Errorf("the record %q counts as free: error %v", value, err)
		}
	}
}
