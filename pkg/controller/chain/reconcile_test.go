package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

type confirmed struct {
	rows   map[int64]store.Row
	writes int
	// succeeded is the success that the head of the chain records.
	succeeded bool
	head      store.Head
	broken    error
}

func (c *confirmed) Confirm(_ context.Context, _ string, number int64, _ types.UID, row store.Row) error {
	if c.broken != nil {
		return c.broken
	}
	c.writes++
	c.rows[number] = row
	return nil
}

func (c *confirmed) Get(context.Context, string) (store.Head, bool, error) {
	return c.head, true, c.broken
}

func (c *confirmed) Release(_ context.Context, _ string, revision types.UID) error {
	if c.head.Hold != nil && c.head.Hold.UID == revision {
		c.head.Hold = nil
	}
	return c.broken
}

func (c *confirmed) Succeed(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error {
	c.succeeded = c.broken == nil
	return c.Confirm(ctx, chain, number, uid, row)
}

// setting is a pass over a chain whose revisions are stored, newest first.
type setting struct {
	*scope
	api         client.WithWatch
	heads       *confirmed
	inventories *storedInventory
	said        *record.FakeRecorder
}

func set(t *testing.T, revisions ...*olmv1alpha1.ClusterExtensionRevision) *setting {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := olmv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&olmv1alpha1.ClusterExtensionRevision{})
	for _, r := range revisions {
		builder = builder.WithObjects(r.DeepCopy())
	}
	s := &setting{api: builder.Build(), heads: &confirmed{rows: map[int64]store.Row{}}, inventories: &storedInventory{}, said: record.NewFakeRecorder(100)}
	s.scope = &scope{chain: "argocd", invalid: map[string]error{}, reconciler: &reconciler{
		Options: Options{
			Client: s.api, Reader: s.api, Heads: s.heads, Inventories: s.inventories, Events: s.said,
			Clock: clocktesting.NewFakePassiveClock(noon), Owners: seen{},
		},
	}}
	if err := s.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ledger = &ledger{inventories: s.inventories, chain: "argocd", inventory: rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}, Reached: map[string]int{}}}
	for i := range s.revisions {
		if rev.IsLayer(&s.revisions[i]) {
			s.layers = append(s.layers, &s.revisions[i])
			s.report.Layers = append(s.report.Layers, rollout.LayerReport{Revision: s.revisions[i].Spec.Revision, Complete: true})
		}
	}
	return s
}

// stored reads a revision; nil if it does not exist.
func (s *setting) stored(t *testing.T, number int64) *olmv1alpha1.ClusterExtensionRevision {
	t.Helper()
	var r olmv1alpha1.ClusterExtensionRevision
	err := s.api.Get(t.Context(), types.NamespacedName{Name: nameOf(number)}, &r)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &r
}

func (s *setting) meanwhile(t *testing.T, number int64) {
	t.Helper()
	r := s.stored(t, number)
	r.Annotations = map[string]string{"somebody": "was here"}
	if err := s.api.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (s *setting) events() []string {
	var said []string
	for {
		select {
		case line := <-s.said.Events:
			said = append(said, line)
		default:
			return said
		}
	}
}

func TestArchive(t *testing.T) {
	cases := map[string]struct {
		reason    string
		revisions []*olmv1alpha1.ClusterExtensionRevision
		change    func(*testing.T, *setting)
		archived  []int64
		stale     bool
	}{
		"succeeded": {
			reason:    "all older ones are archived, none is left behind",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(3, succeeded), numbered(2), numbered(1, succeeded)},
			archived:  []int64{1, 2},
		},
		"not yet": {
			reason:    "until the newest has succeeded, the older ones hold what they have",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(2), numbered(1, succeeded)},
		},
		"succeeded once, not complete now": {
			reason:    "what it lacks now may be what the older one has",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(2, succeeded), numbered(1)},
			change:    func(_ *testing.T, s *setting) { s.report.Layers[0].Complete = false },
		},
		"paused": {
			reason:    "a paused revision changes nothing",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(2, succeeded, state(olmv1alpha1.LifecycleStatePaused)), numbered(1)},
		},
		"alone": {
			reason: "there is nothing to supersede", revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(1, succeeded)},
		},
		"one cannot be read": {
			reason:    "a pass that did nothing decides nothing",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(3, succeeded), numbered(2), numbered(1)},
			change:    func(_ *testing.T, s *setting) { s.invalid[nameOf(2)] = errors.New("no such probe") },
		},
		"changed meanwhile": {
			reason:    "somebody may have unarchived or deleted it: look again",
			revisions: []*olmv1alpha1.ClusterExtensionRevision{numbered(2, succeeded), numbered(1)},
			change:    func(t *testing.T, s *setting) { s.meanwhile(t, 1) },
			stale:     true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.revisions...)
			if tc.change != nil {
				tc.change(t, s)
			}
			if err := s.archive(t.Context()); err != nil {
				t.Fatal(err)
			}
			var archived []int64
			for _, r := range tc.revisions {
				if s.stored(t, r.Spec.Revision).Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
					archived = append(archived, r.Spec.Revision)
				}
			}
			slices.Sort(archived)
			if diff := cmp.Diff(tc.archived, archived); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := len(s.events()); got != len(tc.archived) {
				t.Errorf("%d events for %d archived revisions", got, len(tc.archived))
			}
			if s.stale != tc.stale {
				t.Errorf("%s: stale %t, want %t", tc.reason, s.stale, tc.stale)
			}
		})
	}
}

func finalized(r *olmv1alpha1.ClusterExtensionRevision) {
	deleted(r)
	r.Finalizers = []string{olmv1alpha1.TeardownFinalizer}
}

func TestRelease(t *testing.T) {
	others := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Finalizers = append(r.Finalizers, "example.com/other")
	}
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		change   func(*testing.T, *setting)
		// want lists the finalizers in the end; gone if the revision was deleted.
		want []string
		gone bool
	}{
		"nothing left": {
			reason: "no object carries its content", revision: numbered(1, finalized), gone: true,
		},
		"something left": {
			reason: "one object does", revision: numbered(1, finalized), want: []string{olmv1alpha1.TeardownFinalizer},
			change: func(_ *testing.T, s *setting) {
				s.ledger.inventory.Entries[objectID("server")] = rollout.Entry{Revision: 1}
			},
		},
		"something of another revision": {
			reason: "what another revision has does not hold this one", revision: numbered(1, finalized), gone: true,
			change: func(_ *testing.T, s *setting) {
				s.ledger.inventory.Entries[objectID("server")] = rollout.Entry{Revision: 2}
			},
		},
		"not deleted": {
			reason:   "its finalizer is for later",
			revision: numbered(1, func(r *olmv1alpha1.ClusterExtensionRevision) { r.Finalizers = []string{olmv1alpha1.TeardownFinalizer} }),
			want:     []string{olmv1alpha1.TeardownFinalizer},
		},
		"others hold it too": {
			reason: "only ours is ours to remove", revision: numbered(1, finalized, others), want: []string{"example.com/other"},
		},
		"changed meanwhile": {
			reason: "somebody may have asked for orphans: look again", revision: numbered(1, finalized),
			change: func(t *testing.T, s *setting) { s.meanwhile(t, 1) },
			want:   []string{olmv1alpha1.TeardownFinalizer},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.revision)
			if tc.change != nil {
				tc.change(t, s)
			}
			if err := s.release(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.stored(t, 1)
			if (r == nil) != tc.gone {
				t.Fatalf("%s: gone %t, want %t", tc.reason, r == nil, tc.gone)
			}
			if r != nil {
				if diff := cmp.Diff(tc.want, r.Finalizers); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// behind lists an earlier state, as a cache can do for a moment.
type behind struct {
	client.Client
	seen []olmv1alpha1.ClusterExtensionRevision
}

func (b *behind) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list := into.(*olmv1alpha1.ClusterExtensionRevisionList)
	for i := range b.seen {
		list.Items = append(list.Items, *b.seen[i].DeepCopy())
	}
	return nil
}

// TestOwnWritesAreKnown: a pass that begins before the cache has the last own write uses that
// write, and its own writes are not refused.
func TestOwnWritesAreKnown(t *testing.T) {
	s := set(t, numbered(3), numbered(2), numbered(1, finalized))
	late := &behind{Client: s.api, seen: slices.Clone(s.revisions)}
	s.Client = late
	said := *s.revisions[0].Status.DeepCopy()
	said.ObservedGeneration = 7
	if err := s.update(t.Context(), &s.revisions[0], said); err != nil {
		t.Fatal(err)
	}
	if err := s.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.meanwhile(t, 2)
	for range 2 {
		if err := s.list(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.revisions) != 2 || s.revisions[0].Status.ObservedGeneration != 7 {
			t.Fatalf("the next pass begins with %d revisions, the newest at %d", len(s.revisions), s.revisions[0].Status.ObservedGeneration)
		}
	}
	said.ObservedGeneration++
	if err := s.update(t.Context(), &s.revisions[0], said); err != nil || s.stale {
		t.Errorf("an update behind our own one was refused: %v", err)
	}
	// Newer revisions in the cache win.
	s.meanwhile(t, 3)
	late.seen = []olmv1alpha1.ClusterExtensionRevision{*s.stored(t, 3), *s.stored(t, 2)}
	if err := s.list(t.Context()); err != nil || s.revisions[0].Annotations["somebody"] == "" {
		t.Errorf("what somebody else changed is not seen: %v", err)
	}
}

// TestOwnWritesAreForgotten: an own write stays in memory only until the cache has it. The cache's
// report causes no pass, and most revisions have no other pass for days.
func TestOwnWritesAreForgotten(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before and after list the cache's reports before and after the answer to the write. True
		// is the written state, false the earlier one.
		before, after []bool
		kept          bool
	}{
		"Not told":     {reason: "the next pass may begin before the cache has it", kept: true},
		"Told":         {reason: "the cache has it", after: []bool{true}},
		"Told early":   {reason: "the watch was faster than the answer", before: []bool{true}},
		"Told before":  {reason: "that was an earlier change", before: []bool{false}, kept: true},
		"Told of less": {reason: "the watch is behind", after: []bool{false}, kept: true},
		"Told of both": {reason: "one change after the other", before: []bool{false}, after: []bool{true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, numbered(1))
			events := revisions{EventHandler: handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				t.Error("a status that this controller wrote brings another pass")
			}}, saw: s.saw}
			old := s.revisions[0].DeepCopy()
			written := s.revisions[0].DeepCopy()
			written.Status.ObservedGeneration = 7
			if err := s.api.Status().Update(t.Context(), written); err != nil {
				t.Fatal(err)
			}
			updates := func(told []bool) {
				for _, ours := range told {
					update := event.UpdateEvent{ObjectOld: old, ObjectNew: old}
					if ours {
						update.ObjectNew = written
					}
					events.Update(t.Context(), update, nil)
				}
			}
			updates(tc.before)
			s.known.wrote(written)
			updates(tc.after)
			if kept := s.known[written.UID].own.latest != nil; kept != tc.kept {
				t.Errorf("%s: kept is %t, want %t", tc.reason, kept, tc.kept)
			}
		})
	}
}

// TestOwnDeletesAreKept: until the cache reports the deletion of a revision, it reports earlier
// states.
func TestOwnDeletesAreKept(t *testing.T) {
	s := set(t, numbered(2), numbered(1, finalized))
	last := s.revisions[1].DeepCopy()
	if err := s.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.saw(last)
	left := s.memoryByChain.pending(s.chain).recall([]olmv1alpha1.ClusterExtensionRevision{*s.stored(t, 2), *last})
	if len(left) != 1 || left[0].Spec.Revision != 2 {
		t.Errorf("%d revisions are left, want the second only", len(left))
	}
}

// TestOwnWritesAreSeen: if the cache gets the own write during a read, the result of the earlier
// read is still corrected.
func TestOwnWritesAreSeen(t *testing.T) {
	s := set(t, numbered(1))
	before := s.revisions[0].DeepCopy()
	written := s.revisions[0].DeepCopy()
	written.Status.ObservedGeneration = 7
	if err := s.api.Status().Update(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	s.known.wrote(written)
	s.Client = interceptor.NewClient(s.api, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.(*olmv1alpha1.ClusterExtensionRevisionList).Items = []olmv1alpha1.ClusterExtensionRevision{*before}
			s.saw(written)
			return nil
		},
	})
	if err := s.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.revisions[0].Status.ObservedGeneration; got != 7 {
		t.Errorf("the pass begins with generation %d, from before our own write", got)
	}
}

// TestGiveUpAsksTheStore: a revision that is missing in an outdated cache does not lose its
// inventory.
func TestGiveUpAsksTheStore(t *testing.T) {
	entry := func(s *setting, number int64) {
		s.ledger.inventory.Entries[objectID("server")] = rollout.Entry{Revision: number}
	}
	t.Run("the cache is behind", func(t *testing.T) {
		s := set(t, numbered(2), numbered(1))
		entry(s, 2)
		s.revisions = s.revisions[1:] // as an informer may do
		if err := s.forgetRemoved(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.ledger.inventory.Entries) != 1 {
			t.Error("the objects of a revision that exists were forgotten")
		}
	})
	t.Run("the revision is gone", func(t *testing.T) {
		s := set(t, numbered(1))
		entry(s, 2)
		if err := s.forgetRemoved(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.ledger.inventory.Entries) != 0 || s.inventories.saves != 1 {
			t.Errorf("it is still there: %v, stored %d times", s.ledger.inventory.Entries, s.inventories.saves)
		}
	})
	t.Run("all is there", func(t *testing.T) {
		s := set(t, numbered(1))
		entry(s, 1)
		if err := s.forgetRemoved(t.Context()); err != nil || s.inventories.saves != 0 {
			t.Errorf("nothing to give up, but stored %d times, %v", s.inventories.saves, err)
		}
	})
}

func TestConfirmWritesEachRowOnce(t *testing.T) {
	s := set(t, numbered(2), numbered(1))
	for range 3 {
		if err := s.confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.heads.writes != 2 || s.heads.succeeded {
		t.Errorf("two revisions cost %d writes", s.heads.writes)
	}
	succeeded(&s.revisions[0])
	if err := s.confirm(t.Context()); err != nil || s.heads.writes != 3 || s.heads.rows[2].Result != olmv1alpha1.ConditionSucceeded {
		t.Errorf("success is noted: %d writes, %+v, %v", s.heads.writes, s.heads.rows[2], err)
	}
	if !s.heads.succeeded {
		t.Error("the head does not say that the chain succeeded")
	}
}

func TestStatusIsWrittenWhenItChanges(t *testing.T) {
	s := set(t, numbered(1))
	before := s.stored(t, 1).ResourceVersion
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := s.stored(t, 1)
	if first.ResourceVersion == before || !meta.IsStatusConditionTrue(first.Status.Conditions, olmv1alpha1.ConditionSucceeded) {
		t.Fatalf("status was not written: %+v", first.Status)
	}
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := s.stored(t, 1); again.ResourceVersion != first.ResourceVersion {
		t.Error("the same status was written again")
	}
	s.meanwhile(t, 1)
	s.report.Layers[0].Complete = false
	if err := s.writeStatus(t.Context()); err != nil || !s.stale {
		t.Errorf("a revision that changed meanwhile is looked at again: %v, stale %t", err, s.stale)
	}
}

func TestComplainKeepsWhatWasObserved(t *testing.T) {
	s := set(t, numbered(1, succeeded))
	if err := s.complain(t.Context(), errors.New("no quorum")); err != nil {
		t.Fatal(err)
	}
	conditions := s.stored(t, 1).Status.Conditions
	failing := meta.FindStatusCondition(conditions, olmv1alpha1.ConditionFailing)
	if failing == nil || failing.Status != metav1.ConditionTrue || !strings.Contains(failing.Message, "no quorum") {
		t.Errorf("Failing is %+v", failing)
	}
	if !meta.IsStatusConditionTrue(conditions, olmv1alpha1.ConditionSucceeded) {
		t.Error("Succeeded was forgotten")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	silent := set(t, numbered(1))
	if err := silent.complain(over, errors.New("the term ended")); err != nil || len(silent.stored(t, 1).Status.Conditions) > 0 {
		t.Errorf("the end of a term is no trouble: %v", err)
	}
}

func TestAnnounce(t *testing.T) {
	s := set(t, numbered(2), numbered(1))
	s.report.Events = []rollout.Event{
		{Revision: 2, Warning: true, Reason: "Repaired", Message: "repaired it"},
		{Revision: 1, Reason: "Adopted", Message: "took it over"},
		{Revision: 7, Reason: "Left", Message: "of a revision that is gone"},
	}
	s.announce()
	if diff := cmp.Diff([]string{"Warning Repaired repaired it", "Normal Adopted took it over"}, s.events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNext(t *testing.T) {
	progressing := func(r *olmv1alpha1.ClusterExtensionRevision) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: olmv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reasonRollingOut, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute)),
		})
	}
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		engine   time.Duration
		stale    bool
		want     time.Duration
	}{
		"at rest":              {"nothing is due", numbered(1), 0, false, 0},
		"the engine waits":     {"as long as it says", numbered(1), 30 * time.Second, false, 30 * time.Second},
		"stale":                {"soon", numbered(1), 30 * time.Second, true, staleRetry},
		"deadline":             {"one minute of ten has passed", numbered(1, withDeadline(10), progressing), 0, false, 9 * time.Minute},
		"deadline, sooner":     {"whatever comes first", numbered(1, withDeadline(10), progressing), 30 * time.Second, false, 30 * time.Second},
		"deadline, over":       {"it has been told", numbered(1, withDeadline(1), progressing), 0, false, 0},
		"deadline, done":       {"a rollout that is over has none", numbered(1, withDeadline(10), succeeded), 0, false, 0},
		"deadline, no rollout": {"nothing goes on", numbered(1, withDeadline(10)), 0, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.revision)
			s.report.RequeueAfter, s.stale, s.judged = tc.engine, tc.stale, noon
			if got := s.next(); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	annotated := func(name string) func(*olmv1alpha1.ClusterExtensionRevision) {
		return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Annotations = map[string]string{name: "x"} }
	}
	cases := map[string]struct {
		reason string
		after  *olmv1alpha1.ClusterExtensionRevision
		want   bool
	}{
		"status":         {"this controller wrote it", numbered(1, succeeded), false},
		"spec":           {"the generation counts it", numbered(1, func(r *olmv1alpha1.ClusterExtensionRevision) { r.Generation++ }), true},
		"finalizer":      {"somebody took it off", numbered(1, func(r *olmv1alpha1.ClusterExtensionRevision) { r.Finalizers = []string{"a"} }), true},
		"acknowledged":   {"definitions may go now", numbered(1, annotated(olmv1alpha1.AllowCRDDeletionAnnotation)), true},
		"released":       {"the owner may go on", numbered(1, annotated(olmv1alpha1.ReleaseHoldAnnotation)), true},
		"change cause":   {"history has it", numbered(1, annotated(olmv1alpha1.ChangeCauseAnnotation)), true},
		"any annotation": {"none of our business", numbered(1, annotated("example.com/a")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := concerns(event.UpdateEvent{ObjectOld: numbered(1), ObjectNew: tc.after}); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
