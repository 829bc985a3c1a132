package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func candidate(t testing.TB, seed byte) Identity {
	t.Helper()
	identity, err := New(rand.NewChaCha8([32]byte{seed}), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	if err != nil {
		t.Fatalf("making up an identity: %v", err)
	}
	return identity
}

func TestNew(t *testing.T) {
	a, b := candidate(t, 1), candidate(t, 2)
	if a.ID == b.ID || a.SecretKey == b.SecretKey || a.SecretKey == (Key{}) {
		t.Errorf("two identities are not independent: %s and %s", a.ID, b.ID)
	}
	if len(a.ID) != 36 || a.ID[14] != '4' || !strings.ContainsRune("89ab", rune(a.ID[19])) {
		t.Errorf("%s is no random UUID", a.ID)
	}
	if _, err := New(bytes.NewReader(make([]byte, 20)), time.Now()); err == nil {
		t.Error("a source that ran dry gave an identity")
	}
}

// TestKeyDoesNotShow: a key in a log would make all digests of Secrets guessable.
func TestKeyDoesNotShow(t *testing.T) {
	identity := candidate(t, 1)
	shown := fmt.Sprintf("%v %+v %#v %s %x %d", identity, identity, identity, identity.SecretKey, identity.SecretKey, identity.SecretKey[:0])
	data, err := json.Marshal(identity)
	if err != nil {
		t.Fatal(err)
	}
	shown += string(data)
	for _, secret := range []string{
		fmt.Sprint(identity.SecretKey[0], " ", identity.SecretKey[1]),
		fmt.Sprintf("%x", identity.SecretKey[:4]),
		fmt.Sprintf("%d,%d", identity.SecretKey[0], identity.SecretKey[1]),
	} {
		if strings.Contains(shown, secret) {
			t.Errorf("the key shows as %q in %s", secret, shown)
		}
	}
	if !strings.Contains(shown, redacted) {
		t.Errorf("nothing says that there is a key: %s", shown)
	}
}

// TestFirstStartThenHealthy runs the life of a store as the server does.
func TestFirstStartThenHealthy(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewStore(client, "/penstock")
	if _, err := client.Put(ctx, "compact_rev_key", "1"); err != nil { // keys outside the prefix do not count
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, "/penstock-other/x", "1"); err != nil {
		t.Fatal(err)
	}
	before := storetest.Revision(t, client)
	observed, err := s.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Observed{Revision: before}, observed); diff != "" {
		t.Errorf("an empty store (-want +got):\n%s", diff)
	}
	if verdict := Judge(observed, nil); verdict.State != FirstStart {
		t.Fatalf("got %+v", verdict)
	}
	if _, found, err := s.Read(ctx); found || err != nil {
		t.Errorf("read: found %v, error %v", found, err)
	}
	if now := storetest.Revision(t, client); now != before {
		t.Fatalf("looking at the store wrote to it, %d times", now-before)
	}

	want := candidate(t, 1)
	got, created, err := s.Create(ctx, want)
	if err != nil || !created || got != want {
		t.Fatalf("create: got %+v, created %v, error %v", got, created, err)
	}
	if got, created, err = s.Create(ctx, candidate(t, 2)); err != nil || created || got != want {
		t.Errorf("second create: got %+v, created %v, error %v", got, created, err)
	}
	if got, found, err := s.Read(ctx); err != nil || !found || got != want {
		t.Errorf("read: got %+v, found %v, error %v", got, found, err)
	}
	if observed, err = s.Observe(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Observed{Found: true, ID: want.ID, Format: Format, Revision: before + 1, HighWater: before + 1}, observed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHighWaterOfAnIdleStore: while nothing is written, the keys are not visited.
func TestHighWaterOfAnIdleStore(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	kv := &scans{KV: client}
	s := NewStore(kv, "/penstock")
	for _, step := range []struct {
		reason, write string
		scans         int
	}{
		{"nothing is known yet", "/penstock/a", 1},
		{"nothing was written", "", 0},
		{"something was written", "/penstock/b", 1},
		{"it might have been ours", "/other", 1},
		{"nothing was written since", "", 0},
	} {
		if step.write != "" {
			if _, err := client.Put(ctx, step.write, "x"); err != nil {
				t.Fatal(err)
			}
		}
		kv.count = 0
		if _, err := s.HighWater(ctx); err != nil {
			t.Fatal(err)
		}
		if kv.count != step.scans {
			t.Errorf("%s: all keys were gone through %d times, want %d", step.reason, kv.count, step.scans)
		}
	}
}

// scans counts reads of more than one key.
type scans struct {
	clientv3.KV
	count int
}

func (s *scans) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if len(op.RangeBytes()) > 0 {
		s.count++
	}
	return s.KV.Do(ctx, op)
}

func TestHighWater(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewStore(client, "/penstock")
	highWater := func() int64 {
		t.Helper()
		revision, err := s.HighWater(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	put := func(key string) int64 {
		t.Helper()
		response, err := client.Put(ctx, key, "x")
		if err != nil {
			t.Fatal(err)
		}
		return response.Header.Revision
	}
	if got := highWater(); got != 0 {
		t.Errorf("an empty store is at %d, want 0", got)
	}
	b := put("/penstock/olm.operatorframework.io/b")
	a := put("/penstock/olm.operatorframework.io/a")
	if got := highWater(); got != a {
		t.Errorf("got %d, want the last write %d", got, a)
	}
	put("compact_rev_key")
	put("/penstockother")
	if got := highWater(); got != a {
		t.Errorf("writes of others moved it from %d to %d", a, got)
	}

	// HighWater decreases after a deletion. The verdict does not change.
	identity, _, err := s.Create(ctx, candidate(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	mark := Mark{StoreID: identity.ID, Format: identity.Format}
	newest := put("/penstock/olm.operatorframework.io/c")
	mark, _ = mark.Raised(newest)
	for _, key := range []string{"c", "a"} {
		if _, err := client.Delete(ctx, "/penstock/olm.operatorframework.io/"+key); err != nil {
			t.Fatal(err)
		}
	}
	if got := highWater(); got >= newest || got <= b {
		t.Errorf("got %d, want the identity's, between %d and %d", got, b, newest)
	}
	observed, err := s.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if verdict := Judge(observed, &mark); verdict.State != Healthy {
		t.Errorf("deleting the newest record makes the store %s: %s", verdict.State, verdict.Reason)
	}
}

func TestReplicasConverge(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewStore(client, "/p")
	got := make([]Identity, 8)
	created := make([]bool, len(got))
	var wait sync.WaitGroup
	for i := range got {
		wait.Go(func() {
			var err error
			if got[i], created[i], err = s.Create(ctx, candidate(t, byte(i))); err != nil {
				t.Errorf("create: %v", err)
			}
		})
	}
	wait.Wait()
	var creators int
	for i := range got {
		if created[i] {
			creators++
		}
		if got[i] != got[0] {
			t.Errorf("two replicas have different identities: %s and %s", got[i].ID, got[0].ID)
		}
	}
	if creators != 1 {
		t.Errorf("%d replicas created the identity", creators)
	}
}

func TestCreateCrash(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		prefix := "/" + strings.ReplaceAll(string(how), " ", "-")
		_, _, err := NewStore(storetest.NewCrashingKV(client, 0, how), prefix).Create(ctx, candidate(t, 1))
		if !errors.Is(err, storetest.ErrCrash) {
			t.Fatalf("%s: acknowledged, error %v", how, err)
		}
		want := candidate(t, 2)
		if how == storetest.AfterWrite {
			want = candidate(t, 1)
		}
		if got, _, err := NewStore(client, prefix).Create(ctx, candidate(t, 2)); err != nil || got != want {
			t.Errorf("%s: got %s, want %s, error %v", how, got.ID, want.ID, err)
		}
	}
}

func TestIdentityDamage(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewStore(client, "/p")
	cases := map[string]struct {
		reason, value string
		newer         bool
	}{
		"Empty":    {reason: "an empty value is not a missing identity"},
		"NoJSON":   {reason: "garbage behind the format", value: "PKS\x01{"},
		"NoKey":    {reason: "half an identity", value: "PKS\x01" + `{"id":"a"}`},
		"ShortKey": {reason: "a key of another length", value: "PKS\x01" + `{"id":"a","secretKey":"c2hvcnQ="}`},
		"Newer":    {reason: "a newer Penstock wrote it, in whatever way", value: "PKS\x03anything", newer: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Put(ctx, s.keys.Identity(), tc.value); err != nil {
				t.Fatal(err)
			}
			var damaged *store.DamagedError
			var newer *store.FormatError
			if _, found, err := s.Read(ctx); found || errors.As(err, &damaged) == tc.newer || errors.As(err, &newer) != tc.newer {
				t.Errorf("%s: read: found %v, error %v", tc.reason, found, err)
			}
			observed, err := s.Observe(ctx)
			if tc.newer && (err != nil || Judge(observed, nil).State != NewerFormat) {
				t.Errorf("%s: observed %+v, error %v", tc.reason, observed, err)
			}
			if !tc.newer && !errors.As(err, &damaged) {
				t.Errorf("%s: observed %+v, error %v", tc.reason, observed, err)
			}
			if _, _, err := s.Create(ctx, candidate(t, 1)); err == nil {
				t.Errorf("%s: it was overwritten", tc.reason)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	record, err := encode(candidate(f, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Fuzz(func(t *testing.T, record []byte) {
		if identity, err := decode("/key", record); err == nil && identity.ID == "" {
			t.Error("an identity without id")
		}
	})
}

// TestBeginEpoch: a restored store has the same identity, with another epoch.
func TestBeginEpoch(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewStore(client, "/penstock")
	if _, err := s.BeginEpoch(ctx); err == nil {
		t.Error("a store without identity has epochs")
	}
	want, _, err := s.Create(ctx, candidate(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for want.Epoch = 1; want.Epoch <= 2; want.Epoch++ {
		if got, err := s.BeginEpoch(ctx); err != nil || got != want {
			t.Errorf("got %+v, error %v, want %+v", got, err, want)
		}
		if got, _, err := s.Read(ctx); err != nil || got != want {
			t.Errorf("read %+v, error %v, want %+v", got, err, want)
		}
		if observed, err := s.Observe(ctx); err != nil || observed.Epoch != want.Epoch {
			t.Errorf("observed %+v, error %v", observed, err)
		}
	}
}

// TestRaise: the format of a store is raised once, despite crashes. The rest of its identity does
// not change.
func TestRaise(t *testing.T) {
	client := storetest.Client(t)
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite, storetest.AnswerLost} {
		prefix := "/" + strings.ReplaceAll(string(how), " ", "-")
		earlier := candidate(t, 1)
		earlier.Format = 1
		if _, _, err := NewStore(client, prefix).Create(t.Context(), earlier); err != nil {
			t.Fatal(err)
		}
		if _, err := NewStore(storetest.NewCrashingKV(client, 0, how), prefix).Raise(t.Context()); err == nil {
			t.Errorf("%s: raised without knowing", how)
		}
		want := earlier
		want.Format = Format
		for range 2 {
			raised, err := NewStore(client, prefix).Raise(t.Context())
			if diff := cmp.Diff(want, raised); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", how, err, diff)
			}
		}
		before := storetest.Revision(t, client)
		if _, err := NewStore(client, prefix).Raise(t.Context()); err != nil || storetest.Revision(t, client) != before {
			t.Errorf("%s: a store of this format was written, error %v", how, err)
		}
		record := get(t, client, store.NewKeys(prefix).Identity())
		older := store.Format{Kind: "store identity", Magic: "PKS", Version: 1}
		if _, err := older.Unwrap("/key", record); !errors.As(err, new(*store.FormatError)) {
			t.Errorf("%s: an earlier Penstock takes the store: %v", how, err)
		}
	}
}

func get(t *testing.T, kv clientv3.KV, key string) []byte {
	t.Helper()
	value, err := store.Get(t.Context(), kv, key)
	if err != nil {
		t.Fatal(err)
	}
	return value.Bytes
}
