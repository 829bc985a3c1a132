package chain

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func mustHead(t testing.TB, s *Heads, name string) Head {
	t.Helper()
	h, found, err := s.Get(t.Context(), name)
	if err != nil || !found {
		t.Fatalf("head of %s: found %v, error %v", name, found, err)
	}
	return h
}

// seenHead returns the head of a chain, stored or not.
func seenHead(t testing.TB, s *Heads, name string) Head {
	t.Helper()
	h, _, err := s.Get(t.Context(), name)
	if err != nil {
		t.Error(err)
	}
	return h
}

func TestHeads(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")

	if h, found, err := s.Get(ctx, "argocd"); err != nil || found || h.Next() != 1 {
		t.Errorf("a new chain: got %+v, found %v, error %v", h, found, err)
	}
	steps := []func() error{
		func() error { return s.Advance(ctx, Head{Name: "argocd"}, 3, "a") },
		func() error { return s.Confirm(ctx, "argocd", 3, "a", Row{RequestedBy: "jane", PackRoot: "sha256:0"}) },
		func() error { return s.Succeed(ctx, "argocd", 3, "a", Row{}) },
		func() error { return s.SetOwner(ctx, "argocd", "owner") },
		func() error { return s.Record(ctx, "argocd", Row{Revision: 3, UID: "a", Result: "Succeeded"}) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want := Head{
		Name: "argocd", OwnerUID: "owner", Highest: 3, HighestUID: "a", Confirmed: true, Succeeded: true,
		Rows: []Row{{Revision: 3, UID: "a", RequestedBy: "jane", PackRoot: "sha256:0", Result: "Succeeded"}},
	}
	if diff := cmp.Diff(want, mustHead(t, s, "argocd")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	before := storetest.Revision(t, client)
	for i, step := range steps[1:] {
		if err := step(); err != nil {
			t.Errorf("step %d once more: %v", i, err)
		}
	}
	if after := storetest.Revision(t, client); after != before {
		t.Errorf("what is so already was written %d times", after-before)
	}

	var used *NumberUsedError
	if err := s.Advance(ctx, mustHead(t, s, "argocd"), 3, "b"); !errors.As(err, &used) || used.Next != 4 {
		t.Errorf("a used number: got error %v", err)
	}
	if _, found, err := s.Get(ctx, "argo"); found || err != nil {
		t.Errorf("another chain: found %v, error %v", found, err)
	}
	if err := s.Advance(ctx, Head{}, 1, "a"); err == nil {
		t.Error("a chain without name took a number")
	}
}

// TestAdvanceSameNumberConcurrently: many creates take the same new number. Each reads again and
// takes it from the previous create, because nothing is confirmed. The create whose record is
// written keeps it.
func TestAdvanceSameNumberConcurrently(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	for round := range 5 {
		name := fmt.Sprintf("chain%d", round)
		record := "/records/" + name + "-1"
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				uid := types.UID(fmt.Sprint(i))
				var used *NumberUsedError
				var overtaken *OvertakenError
				err := s.Advance(ctx, seenHead(t, s, name), 1, uid)
				for errors.As(err, &overtaken) {
					err = s.Advance(ctx, seenHead(t, s, name), 1, uid)
				}
				if errors.As(err, &used) {
					return // the winner has already confirmed it
				} else if err != nil {
					t.Errorf("advance: %v", err)
					return
				}
				_, won, err := store.Swap(ctx, client, record, []byte(uid), 0)
				if err != nil {
					t.Errorf("writing the record: %v", err)
				}
				if won {
					if err := s.Confirm(ctx, name, 1, uid, Row{}); err != nil {
						t.Errorf("confirm: %v", err)
					}
				}
			})
		}
		wait.Wait()
		written, err := store.Get(ctx, client, record)
		if err != nil {
			t.Fatal(err)
		}
		h := mustHead(t, s, name)
		if h.Highest != 1 || string(h.HighestUID) != string(written.Bytes) || !h.Confirmed || len(h.Rows) != 1 {
			t.Errorf("the record of %s was written, and the head is %+v", written.Bytes, h)
		}
	}
}

// TestAdvanceDifferentNumbersConcurrently: only one of several creates that have read the same
// chain takes its number. The others fail, because the rights of their users were not checked
// against the new revision.
func TestAdvanceDifferentNumbersConcurrently(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	var taken atomic.Int64
	var wait sync.WaitGroup
	for i := range int64(12) {
		wait.Go(func() {
			number := i + 1
			err := s.Advance(ctx, Head{Name: "argocd"}, number, types.UID(fmt.Sprint(number)))
			var used *NumberUsedError
			var open *OpenError
			var overtaken *OvertakenError
			switch {
			case err == nil:
				if !taken.CompareAndSwap(0, number) {
					t.Errorf("number %d was taken beside %d", number, taken.Load())
				}
			case errors.As(err, &used) && used.Highest > number, errors.As(err, &open) && open.Open < number:
			case errors.As(err, &overtaken):
				t.Errorf("number %d was overtaken by an equal one: %v", number, err)
			default:
				t.Errorf("number %d: %v", number, err)
			}
		})
	}
	wait.Wait()
	if h := mustHead(t, s, "argocd"); h.Highest == 0 || h.Highest != taken.Load() || h.Confirmed {
		t.Errorf("%d was taken, and the head is %+v", taken.Load(), h)
	}
}

// create runs the steps of the API server: take the number, write the record, confirm.
func create(t testing.TB, kv clientv3.KV, prefix string, number int64, uid types.UID) error {
	t.Helper()
	s := NewHeads(kv, prefix)
	if err := s.Advance(t.Context(), seenHead(t, s, "argocd"), number, uid); err != nil {
		return err
	}
	_, written, err := store.Swap(t.Context(), kv, fmt.Sprintf("%s/records/argocd-%d", prefix, number), []byte(uid), 0)
	if err != nil {
		return err
	}
	if !written {
		return fmt.Errorf("argocd-%d exists", number)
	}
	return s.Confirm(t.Context(), "argocd", number, uid, Row{RequestedBy: "jane"})
}

// TestCreateCrash: a create is killed at each write, before or after etcd executes it. Then either
// the record exists and another process can confirm it, or another create gets the same number.
func TestCreateCrash(t *testing.T) {
	client := storetest.Client(t)
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		var writes int
		for ; ; writes++ {
			at := fmt.Sprintf("crash at write %d %s", writes, how)
			prefix := "/" + strings.ReplaceAll(at, " ", "-")
			kv := storetest.NewCrashingKV(client, writes, how)
			err := create(t, kv, prefix, 1, "first")
			if !kv.Crashed() {
				if err != nil {
					t.Fatalf("create without a crash: %v", err)
				}
				break
			}
			if !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("%s: acknowledged, error %v", at, err)
			}
			s := NewHeads(client, prefix)
			record, err := store.Get(t.Context(), client, prefix+"/records/argocd-1")
			if err != nil {
				t.Fatal(err)
			}
			winner := types.UID("first")
			if record.Exists() {
				if err := s.Confirm(t.Context(), "argocd", 1, winner, Row{RequestedBy: "jane"}); err != nil {
					t.Errorf("%s: confirming the record that was found: %v", at, err)
				}
			} else {
				winner = "second"
				if err := create(t, client, prefix, 1, winner); err != nil {
					t.Errorf("%s: nothing was written, and the number is lost: %v", at, err)
				}
			}
			want := Head{Name: "argocd", Highest: 1, HighestUID: winner, Confirmed: true, Rows: []Row{{Revision: 1, UID: winner, RequestedBy: "jane"}}}
			if diff := cmp.Diff(want, mustHead(t, s, "argocd")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", at, diff)
			}
			var used *NumberUsedError
			if err := s.Advance(t.Context(), seenHead(t, s, "argocd"), 1, "third"); !errors.As(err, &used) {
				t.Errorf("%s: number 1 was given out again, error %v", at, err)
			}
		}
		if writes != 3 {
			t.Errorf("a create had %d writes, want 3", writes)
		}
	}
}

func TestHeadDamage(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	cases := map[string]struct {
		reason string
		value  string
		newer  bool
	}{
		"Empty":         {reason: "an empty value is not a new chain"},
		"Garbage":       {reason: "not a head", value: "garbage"},
		"OtherChain":    {reason: "the head of another chain", value: "PKH\x03" + `{"name":"other","highest":9}`},
		"UnknownField":  {reason: "it would be lost with the next write", value: "PKH\x03" + `{"name":"UnknownField","bogus":true}`},
		"Trailing":      {reason: "more than one value", value: "PKH\x03" + `{"name":"Trailing"}{}`},
		"Newer":         {reason: "a newer Penstock wrote it", value: "PKH\x05{}", newer: true},
		"NotCompressed": {reason: "format 4 is", value: "PKH\x04" + `{"name":"NotCompressed"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Put(ctx, s.keys.Head(name), tc.value); err != nil {
				t.Fatal(err)
			}
			err := s.Advance(ctx, Head{Name: name}, 100, "uid")
			var damaged *store.DamagedError
			var newer *store.FormatError
			if errors.As(err, &damaged) == tc.newer || errors.As(err, &newer) != tc.newer {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if value, err := store.Get(ctx, client, s.keys.Head(name)); err != nil || string(value.Bytes) != tc.value {
				t.Errorf("%s: it was overwritten, error %v", tc.reason, err)
			}
		})
	}
}

// TestHeadOfFormat1: a head in format 1 can be read. It stays unchanged until the first change,
// which writes the newest format.
func TestHeadOfFormat1(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	const old = "PKH\x01" + `{"name":"argocd","highest":3,"highestUID":"a","confirmed":true,"rows":[{"revision":3,"uid":"a","result":"Succeeded"}]}`
	if _, err := client.Put(ctx, s.keys.Head("argocd"), old); err != nil {
		t.Fatal(err)
	}
	row := Row{Revision: 3, UID: "a", Result: "Succeeded"}
	want := Head{Name: "argocd", Highest: 3, HighestUID: "a", Confirmed: true, Rows: []Row{row}}
	if diff := cmp.Diff(want, mustHead(t, s, "argocd")); diff != "" {
		t.Errorf("format 1 (-want +got):\n%s", diff)
	}

	before := storetest.Revision(t, client)
	if err := s.Record(ctx, "argocd", row); err != nil {
		t.Fatal(err)
	}
	if after := storetest.Revision(t, client); after != before {
		t.Errorf("what says the same was written %d times", after-before)
	}

	row.Counts = &Counts{Objects: 2, Added: 2}
	if err := s.Record(ctx, "argocd", row); err != nil {
		t.Fatal(err)
	}
	want.Rows[0] = row
	if diff := cmp.Diff(want, mustHead(t, s, "argocd")); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	if stored, err := store.Get(ctx, client, s.keys.Head("argocd")); err != nil || !strings.HasPrefix(string(stored.Bytes), "PKH\x04") {
		t.Errorf("it was written as %.4q, error %v; want format 4", stored.Bytes, err)
	}
}

func TestHeadsHold(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	for i, step := range []struct {
		do   func() error
		want *Hold
	}{
		{func() error { return s.AdvanceHolding(ctx, Head{Name: "argocd"}, 4, "b", 7) }, nil},
		{func() error { return s.Confirm(ctx, "argocd", 4, "b", Row{}) }, &Hold{4, "b", 7}},
		{func() error { return s.Release(ctx, "argocd", "another") }, &Hold{4, "b", 7}},
		{func() error { return s.Release(ctx, "argocd", "b") }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(step.want, mustHead(t, s, "argocd").Hold); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}
