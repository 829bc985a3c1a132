package storeguard

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// storeAndHost is a store and a host, each of which may be lost or replaced.
type storeAndHost struct {
	t      *testing.T
	etcd   *clientv3.Client
	prefix string
	host   *fake.Clientset
}

func newStoreAndHost(t *testing.T, etcd *clientv3.Client) *storeAndHost {
	return &storeAndHost{t: t, etcd: etcd, prefix: "/" + t.Name(), host: fake.NewClientset()}
}

func (w *storeAndHost) guard(accept string) *Guard {
	return &Guard{
		store:   identity.NewStore(w.etcd, w.prefix),
		witness: &witness{configMaps: w.host.CoreV1().ConfigMaps("ns"), namespace: "ns"},
		forget:  chain.NewInventories(w.etcd, w.prefix).ForgetAll,
		accept:  accept,
		now:     time.Now,
		timeout: 10 * time.Second,
	}
}

func (w *storeAndHost) decide(accept string) Decision {
	w.t.Helper()
	found, err := w.guard(accept).decide(w.t.Context())
	if err != nil {
		w.t.Fatalf("decide: %v", err)
	}
	return found
}

func (w *storeAndHost) mark() *identity.Mark {
	w.t.Helper()
	mark, err := w.guard("").witness.read(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return mark
}

func (w *storeAndHost) witnessed(change func(*identity.Mark)) {
	w.t.Helper()
	next := *w.mark()
	change(&next)
	if err := w.guard("").witness.replace(w.t.Context(), *w.mark(), next); err != nil {
		w.t.Fatal(err)
	}
}

func (w *storeAndHost) emptyStore() {
	w.t.Helper()
	if _, err := w.etcd.Delete(w.t.Context(), w.prefix, clientv3.WithPrefix()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *storeAndHost) put(key, value string) {
	w.t.Helper()
	if _, err := w.etcd.Put(w.t.Context(), key, value); err != nil {
		w.t.Fatal(err)
	}
}

func token(t *testing.T, refusal string) string {
	t.Helper()
	_, found, ok := strings.Cut(refusal, "--accept-identity=")
	if !ok {
		t.Fatalf("the refusal does not say how to accept the store: %s", refusal)
	}
	return found
}

func TestFirstStartAndRestart(t *testing.T) {
	w := newStoreAndHost(t, storetest.Client(t))
	first := w.decide("")
	if first.Degraded != "" || first.Identity.ID == "" || first.Keeper == nil {
		t.Fatalf("a first start is not served: %+v", first)
	}
	mark := w.mark()
	if mark == nil || mark.StoreID != first.Identity.ID {
		t.Fatalf("the host remembers %+v, want store %s", mark, first.Identity.ID)
	}
	again := w.decide("")
	if diff := cmp.Diff(first.Identity, again.Identity); diff != "" || again.Degraded != "" {
		t.Errorf("a restart finds another store, or refuses (%q): %s", again.Degraded, diff)
	}
}

// TestCrashBeforeWitness: a crash between the two writes of a first start leaves a store without a
// witness. The next start adds the witness.
func TestCrashBeforeWitness(t *testing.T) {
	w := newStoreAndHost(t, storetest.Client(t))
	w.host.PrependReactor("create", "configmaps", failing("create"))
	if _, err := w.guard("").decide(t.Context()); err == nil {
		t.Fatal("served without a witness")
	}
	w.host = fake.NewClientset()
	if found := w.decide(""); found.Degraded != "" || w.mark().StoreID != found.Identity.ID {
		t.Errorf("not completed: %+v", found)
	}
}

func failing(verb string) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, verb, nil)
	}
}

func TestLostStores(t *testing.T) {
	etcd := storetest.Client(t)
	cases := map[string]struct {
		reason string
		damage func(w *storeAndHost)
		says   string
		// final marks refusals that cannot be overruled.
		final bool
		// renewed means that the accepted store has a new identity.
		renewed bool
	}{
		"Empty": {
			reason:  "the data directory was swapped for an empty one",
			damage:  func(w *storeAndHost) { w.emptyStore() },
			says:    "the store is empty",
			renewed: true,
		},
		"Foreign": {
			reason: "the data directory of another cluster",
			damage: func(w *storeAndHost) {
				w.witnessed(func(m *identity.Mark) { m.StoreID = "another" })
			},
			says: "the host cluster has seen store another",
		},
		"Older": {
			reason: "a backup was brought back",
			damage: func(w *storeAndHost) {
				w.witnessed(func(m *identity.Mark) { m.HighWater += 1 << 20 })
			},
			says: "it is an older copy",
		},
		"Restored": {
			reason: "a snapshot was brought back, and etcd is ahead of all that was seen",
			damage: func(w *storeAndHost) {
				if _, err := identity.NewStore(w.etcd, w.prefix).BeginEpoch(w.t.Context()); err != nil {
					w.t.Fatal(err)
				}
			},
			says: "was restored from a snapshot",
		},
		"RestoredUnwitnessed": {
			reason: "the same in a cluster that has no witness",
			damage: func(w *storeAndHost) {
				if _, err := identity.NewStore(w.etcd, w.prefix).BeginEpoch(w.t.Context()); err != nil {
					w.t.Fatal(err)
				}
				if err := w.host.CoreV1().ConfigMaps("ns").Delete(w.t.Context(), WitnessName, metav1.DeleteOptions{}); err != nil {
					w.t.Fatal(err)
				}
			},
			says: "has no witness of it",
		},
		"BeforeRestoring": {
			reason: "the copy that was restored from, once more",
			damage: func(w *storeAndHost) {
				w.witnessed(func(m *identity.Mark) { m.Epoch++ })
			},
			says: "from before it was restored",
		},
		"NobodysRecords": {
			reason: "records without an identity",
			damage: func(w *storeAndHost) {
				w.emptyStore()
				w.put(store.NewKeys(w.prefix).Head("argocd"), "x")
			},
			says:    "but no identity",
			renewed: true,
		},
		"Newer": {
			reason: "a downgrade: what cannot be read cannot be accepted",
			damage: func(w *storeAndHost) {
				w.witnessed(func(m *identity.Mark) { m.Format = identity.Format + 1 })
			},
			says:  "run the newer one",
			final: true,
		},
		"Damaged": {
			reason: "an identity that cannot be read is not a missing one",
			damage: func(w *storeAndHost) { w.put(store.NewKeys(w.prefix).Identity(), "garbage") },
			says:   "is damaged",
			final:  true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newStoreAndHost(t, etcd)
			before := w.decide("")
			inventories := chain.NewInventories(w.etcd, w.prefix)
			believed := chain.Inventory{Reached: map[string]int{"uid": 1}, Entries: []chain.Entry{{Version: "v1", Kind: "ConfigMap", Name: "a", UID: "uid"}}}
			if _, err := inventories.Save(t.Context(), "argocd", believed, 0); err != nil {
				t.Fatal(err)
			}
			w.decide("")
			tc.damage(w)
			mark := w.mark()
			refusedAll := func() {
				t.Helper()
				if diff := cmp.Diff(mark, w.mark()); diff != "" {
					t.Errorf("%s: a refusal changed the witness: %s", tc.reason, diff)
				}
			}

			refused := w.decide("")
			if !strings.Contains(refused.Degraded, tc.says) {
				t.Fatalf("%s: got refusal %q, want %q", tc.reason, refused.Degraded, tc.says)
			}
			if refused.Keeper != nil || refused.Identity.ID != "" {
				t.Errorf("%s: a refused store must not be witnessed, nor its key used", tc.reason)
			}
			if refused.Again != nil {
				t.Errorf("%s: a decision is not made twice", tc.reason)
			}
			wrong := w.decide("0123456789ab")
			if wrong.Degraded == "" {
				t.Errorf("%s: any value of --accept-identity is good enough", tc.reason)
			}
			if !strings.Contains(wrong.Degraded, `"0123456789ab"`) {
				t.Errorf("%s: the refusal does not say that the value of --accept-identity is another decision's: %s", tc.reason, wrong.Degraded)
			}
			if !tc.final && token(t, wrong.Degraded) != token(t, refused.Degraded) {
				t.Errorf("%s: the refusal does not end with the value that would match: %s", tc.reason, wrong.Degraded)
			}
			refusedAll()
			if tc.final {
				if strings.Contains(refused.Degraded, "--accept-identity") {
					t.Errorf("%s: the refusal offers to accept the store: %s", tc.reason, refused.Degraded)
				}
				return
			}

			decision := token(t, refused.Degraded)
			accepted := w.decide(decision)
			if accepted.Degraded != "" {
				t.Fatalf("%s: the decision is not accepted: %s", tc.reason, accepted.Degraded)
			}
			if got := accepted.Identity.ID != before.Identity.ID; got != tc.renewed {
				t.Errorf("%s: renewed identity: got %t, want %t", tc.reason, got, tc.renewed)
			}
			if after := w.mark(); after.StoreID != accepted.Identity.ID || after.Epoch != accepted.Identity.Epoch {
				t.Errorf("%s: the witness does not know the accepted store: %+v", tc.reason, after)
			}
			if left, _, err := inventories.Load(t.Context(), "argocd"); err != nil || !left.Empty() {
				t.Errorf("%s: what a store of another time believes to have is not forgotten: %+v, error %v", tc.reason, left, err)
			}
			if after := w.decide(""); after.Degraded != "" {
				t.Errorf("%s: refused again without the flag: %s", tc.reason, after.Degraded)
			}
			// A forgotten flag must not accept the next loss.
			w.emptyStore()
			if again := w.decide(decision); again.Degraded == "" {
				t.Errorf("%s: a decision was good for a second loss", tc.reason)
			}
		})
	}
}

// TestUnreadableWitness: a witness that cannot be read is not treated as a missing witness.
func TestUnreadableWitness(t *testing.T) {
	cases := map[string]struct {
		reason  string
		host    *fake.Clientset
		passing bool
	}{
		"Forbidden": {
			reason: "a right is missing: waiting does not help",
			host:   reacting("get", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, WitnessName, nil)),
		},
		"Busy": {
			reason:  "the host is starting",
			host:    reacting("get", apierrors.NewServiceUnavailable("starting")),
			passing: true,
		},
		"Garbage": {
			reason: "somebody edited the witness",
			host:   fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: WitnessName}}),
		},
	}
	etcd := storetest.Client(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newStoreAndHost(t, etcd)
			w.host = tc.host
			_, err := w.guard("").decide(t.Context())
			if err == nil {
				t.Fatalf("%s: taken for a first start", tc.reason)
			}
			if got := passing(err); got != tc.passing {
				t.Errorf("%s: passing: got %t, want %t (%v)", tc.reason, got, tc.passing, err)
			}
			if _, found, _ := w.guard("").store.Read(t.Context()); found {
				t.Errorf("%s: the store was given an identity", tc.reason)
			}
			if tc.passing {
				return
			}
			decision, err := w.guard("").Establish(t.Context())
			if err != nil {
				t.Fatalf("%s: the process ends, and with it discovery: %v", tc.reason, err)
			}
			if !strings.Contains(decision.Degraded, "configmap ns/"+WitnessName) || decision.Identity.ID != "" || decision.Again == nil {
				t.Errorf("%s: not degraded until it can be read: %+v", tc.reason, decision)
			}
		})
	}
}

// TestWitnessIsMended: after an edit of the witness, the refusal says how to repair it. The store
// is served after the repair.
func TestWitnessIsMended(t *testing.T) {
	w := newStoreAndHost(t, storetest.Client(t))
	before := w.decide("")
	configMaps := w.host.CoreV1().ConfigMaps("ns")
	right, err := configMaps.Get(t.Context(), WitnessName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	broken := right.DeepCopy()
	broken.Data["highWater"] = "many"
	if _, err := configMaps.Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	refused, err := w.guard("").Establish(t.Context())
	if err != nil {
		t.Fatalf("the process ends, and with it discovery: %v", err)
	}
	for _, part := range []string{`"highWater" is "many"`, before.Identity.ID} {
		if !strings.Contains(refused.Degraded, part) {
			t.Errorf("the refusal does not say %s: %s", part, refused.Degraded)
		}
	}
	if err := refused.Again(t.Context()); err == nil {
		t.Error("the witness can be read although nobody mended it")
	}
	if _, err := configMaps.Update(t.Context(), right, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := refused.Again(t.Context()); err != nil {
		t.Errorf("mended, and still: %v", err)
	}
	if after := w.decide(""); after.Identity.ID != before.Identity.ID {
		t.Errorf("another store is served: %+v", after)
	}
}

// TestUnreachableStore: an etcd that does not answer does not stop discovery.
func TestUnreachableStore(t *testing.T) {
	away, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + t.TempDir() + "/none"}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = away.Close() })
	w := newStoreAndHost(t, away)
	g := w.guard("")
	g.timeout = 50 * time.Millisecond
	refused, err := g.Establish(t.Context())
	if err != nil {
		t.Fatalf("the process ends, and with it discovery: %v", err)
	}
	if !strings.Contains(refused.Degraded, "observing the store") || refused.Again == nil {
		t.Errorf("not degraded until etcd answers: %+v", refused)
	}
	if err := refused.Again(t.Context()); err == nil {
		t.Error("decided without a store")
	}

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Establish(stopped); err == nil {
		t.Error("a stop is taken for an answer")
	}
}

func reacting(verb string, err error) *fake.Clientset {
	host := fake.NewClientset()
	host.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	return host
}

func TestMarkIsRaisedOnlyByWrites(t *testing.T) {
	w := newStoreAndHost(t, storetest.Client(t))
	keeper := w.decide("").Keeper
	ctx := context.Background()
	if err := raise(ctx, keeper); err != nil {
		t.Fatal(err)
	}
	settled := w.mark().HighWater
	w.host.ClearActions()
	w.put("/compact_rev_key", "1") // as the API server's compactor writes it
	if err := raise(ctx, keeper); err != nil {
		t.Fatal(err)
	}
	if n := len(w.host.Actions()); n != 0 {
		t.Errorf("an idle store cost %d requests to the host", n)
	}
	w.put(w.prefix+"/chains/argocd/head", "x")
	if err := raise(ctx, keeper); err != nil {
		t.Fatal(err)
	}
	if got := w.mark().HighWater; got <= settled {
		t.Errorf("the mark is at %d after a write, and was at %d", got, settled)
	}

	// Another store has become this cluster's store: its mark must not be raised.
	w.witnessed(func(m *identity.Mark) { m.StoreID = "another" })
	w.put(w.prefix+"/chains/argocd/head", "y")
	before := *w.mark()
	if err := raise(ctx, keeper); err == nil {
		t.Error("another store's mark was raised")
	}
	if diff := cmp.Diff(before, *w.mark()); diff != "" {
		t.Errorf("another store's mark was changed: %s", diff)
	}
}

// raise reads the store, and raises the mark if needed.
func raise(ctx context.Context, keeper *MarkKeeper) error {
	highWater, err := keeper.store.HighWater(ctx)
	if err != nil {
		return err
	}
	return keeper.raise(ctx, highWater)
}

// TestEarlierFormat: a store of an earlier format is served. It then gets the present format, so
// that an earlier Penstock refuses it.
func TestEarlierFormat(t *testing.T) {
	w := newStoreAndHost(t, storetest.Client(t))
	earlier, err := identity.New(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	earlier.Format = 1
	if _, _, err := identity.NewStore(w.etcd, w.prefix).Create(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	if _, err := w.guard("").witness.create(t.Context(), identity.Mark{StoreID: earlier.ID, Format: 1}); err != nil {
		t.Fatal(err)
	}
	want := earlier
	want.Format = identity.Format
	// A replica of the earlier version raises the mark in between, so the first attempt fails.
	fails := 1
	w.host.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails--
		return fails >= 0, nil, apierrors.NewConflict(corev1.Resource("configmaps"), WitnessName, errors.New("by the test"))
	})
	first := w.guard("")
	if _, err := first.decide(t.Context()); !errors.Is(err, errChanged) {
		t.Fatalf("the first try: got %v, want that somebody came in between", err)
	}
	for _, g := range []*Guard{first, w.guard("")} {
		found, err := g.decide(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found.Raised != (g == first) {
			t.Errorf("whether this run has raised the format: got %v", found.Raised)
		}
		if diff := cmp.Diff(want, found.Identity); diff != "" || found.Degraded != "" {
			t.Fatalf("it is degraded (%q), or another store (-want +got):\n%s", found.Degraded, diff)
		}
		if mark := w.mark(); mark.Format != identity.Format {
			t.Errorf("the host remembers format %d", mark.Format)
		}
		if err := found.Keeper.raise(t.Context(), storetest.Revision(t, w.etcd)); err != nil {
			t.Errorf("the mark cannot be raised: %v", err)
		}
	}
}
