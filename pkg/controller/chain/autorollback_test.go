package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

var errDead = errors.New("the process is dead")

// mortal is a process that dies after its k-th write: the write happens, but its answer is lost.
// With 0 the process never dies.
type mortal struct {
	k, writes int
}

func (m *mortal) dead() bool { return m.k > 0 && m.writes >= m.k }

func (m *mortal) write(do func() error) error {
	if m.dead() {
		return errDead
	}
	m.writes++
	err := do()
	if m.dead() {
		return errDead
	}
	return err
}

// backend has the state that survives the death of a process.
type backend struct {
	api   client.WithWatch
	heads *store.Heads
}

func newBackend(t *testing.T, etcd clientv3.KV, prefix string, revisions ...*olmv1alpha1.ClusterExtensionRevision) *backend {
	t.Helper()
	return &backend{api: set(t, revisions...).api, heads: store.NewHeads(etcd, "/"+prefix)}
}

type process struct {
	*backend
	*mortal
	scope *scope
	said  *record.FakeRecorder
	// asked counts the requests for a rollback. refusing is the answer to them.
	asked    int
	refusing error
	// behind is the content of an outdated cache; nil for the stored content.
	behind []olmv1alpha1.ClusterExtensionRevision
	// metrics answers MetricChecks. complete is true if the newest revision is rolled out.
	metrics  Metrics
	complete bool
}

func (p *process) Get(ctx context.Context, chain string) (store.Head, bool, error) {
	return p.heads.Get(ctx, chain)
}

func (p *process) Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error {
	return p.write(func() error { return p.heads.Confirm(ctx, chain, number, uid, row) })
}

func (p *process) Release(ctx context.Context, chain string, revision types.UID) error {
	return p.write(func() error { return p.heads.Release(ctx, chain, revision) })
}

func (p *process) Succeed(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error {
	return p.write(func() error { return p.heads.Succeed(ctx, chain, number, uid, row) })
}

// Rollback does the same steps as the server, in the same order.
func (p *process) Rollback(ctx context.Context, name string, asked *olmv1alpha1.RevisionRollback, _ metav1.CreateOptions) (*olmv1alpha1.RevisionRollback, error) {
	p.asked++
	if p.refusing != nil {
		return nil, p.refusing
	}
	revisions, err := bychain.List(ctx, p.api, "argocd")
	if err != nil {
		return nil, err
	}
	if newest := revisions[0].Name; newest != asked.Spec.From {
		return nil, apierrors.NewConflict(olmv1alpha1.Resource("clusterextensionrevisions"), name, fmt.Errorf("%s is the newest", newest))
	}
	head, _, err := p.heads.Get(ctx, "argocd")
	if err != nil {
		return nil, err
	}
	made := numbered(head.Next(), annotated(olmv1alpha1.RollbackOfAnnotation, name), annotated(olmv1alpha1.ChangeCauseAnnotation, asked.Spec.Cause))
	made.Status.RequestedBy = &olmv1alpha1.Requester{Username: "system:apiserver", Groups: []string{"system:masters"}}
	made.Spec.OnFailure, made.Spec.ProgressDeadlineMinutes = olmv1alpha1.OnFailureRollback, 10
	for _, write := range []func() error{
		func() error { return p.heads.Advance(ctx, head, made.Spec.Revision, made.UID) },
		func() error { return p.api.Create(ctx, made.DeepCopy()) },
		func() error { return p.heads.Confirm(ctx, "argocd", made.Spec.Revision, made.UID, store.Row{}) },
	} {
		if err := p.write(write); err != nil {
			return nil, err
		}
	}
	return &olmv1alpha1.RevisionRollback{Status: olmv1alpha1.RevisionRollbackStatus{Revision: made.Name}}, nil
}

// process starts a process that dies after its k-th write.
func (b *backend) process(k int) *process {
	p := &process{backend: b, mortal: &mortal{k: k}, said: record.NewFakeRecorder(100)}
	api := interceptor.NewClient(b.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if p.behind == nil {
				return c.List(ctx, list, opts...)
			}
			list.(*olmv1alpha1.ClusterExtensionRevisionList).Items = p.behind
			return nil
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			return p.write(func() error { return c.SubResource(name).Update(ctx, object, opts...) })
		},
	})
	p.scope = &scope{reconciler: &reconciler{Options: Options{
		Client: api, Reader: b.api, Heads: p, Rollbacks: p, Events: p.said, Clock: clocktesting.NewFakePassiveClock(noon.Add(10 * time.Minute)), Owners: seen{},
	}}}
	return p
}

// pass does the steps of a pass, except the rollout itself. The newest revision waits for a probe
// forever. The other revisions are healthy.
func (p *process) pass(ctx context.Context) error {
	v := &scope{reconciler: p.scope.reconciler, chain: "argocd", invalid: map[string]error{}}
	v.ledger, v.Metrics = &ledger{}, p.metrics
	p.scope = v
	if err := v.list(ctx); err != nil {
		return err
	}
	for i := range v.revisions {
		if !rev.IsLayer(&v.revisions[i]) {
			continue
		}
		layer := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
		if i == 0 && !p.complete {
			layer = report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)
		}
		v.layers, v.report.Layers = append(v.layers, &v.revisions[i]), append(v.report.Layers, *layer)
	}
	for _, step := range []func(context.Context) error{v.confirm, v.writeStatus, v.confirm, v.fallBack} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) revisions(t *testing.T) []olmv1alpha1.ClusterExtensionRevision {
	t.Helper()
	revisions, err := bychain.List(t.Context(), b.api, "argocd")
	if err != nil {
		t.Fatal(err)
	}
	return revisions
}

func (b *backend) told(t *testing.T, number int64) *metav1.Condition {
	t.Helper()
	for _, revision := range b.revisions(t) {
		if revision.Spec.Revision == number {
			return meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionRolledBack)
		}
	}
	return nil
}

// stuck is a change: the revision has been rolling out since noon, with a deadline of ten minutes.
func stuck(r *olmv1alpha1.ClusterExtensionRevision) {
	withDeadline(10)(r)
	r.Spec.OnFailure = olmv1alpha1.OnFailureRollback
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: olmv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reasonRollingOut, LastTransitionTime: metav1.NewTime(noon),
	})
}

// worked is a change: the revision has objects, and all are available.
func worked(r *olmv1alpha1.ClusterExtensionRevision) {
	succeeded(r)
	r.Spec.Phases = []olmv1alpha1.RevisionPhase{{Name: "deploy", Objects: []olmv1alpha1.RevisionObject{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "argocd", Name: "a"}}}}
}

var archived = state(olmv1alpha1.LifecycleStateArchived)

// chainOf returns a chain with the stuck revision 4 above three revisions, of which 1 and 2
// succeeded.
func chainOf(t *testing.T, etcd clientv3.KV, prefix string) *backend {
	t.Helper()
	return newBackend(t, etcd, prefix, numbered(4, stuck), numbered(3), numbered(2, worked, archived), numbered(1, worked, archived))
}

// TestRollbackOnceWhoeverDies: the process dies after its k-th write, for every k, and a new
// process continues. Exactly one rollback happens, and status and events report it.
func TestRollbackOnceWhoeverDies(t *testing.T) {
	etcd := storetest.Client(t)
	for k := 1; ; k++ {
		b := chainOf(t, etcd, fmt.Sprint(k))
		dying := b.process(k)
		for range 3 {
			if err := dying.pass(t.Context()); err != nil && !dying.dead() {
				t.Fatalf("write %d: %v", k, err)
			}
		}
		next := b.process(0)
		for range 3 {
			if err := next.pass(t.Context()); err != nil {
				t.Fatalf("after write %d: %v", k, err)
			}
		}
		b.isRolledBackOnce(t, fmt.Sprint("killed behind write ", k))
		if !dying.dead() {
			if k < 8 {
				t.Errorf("there are %d writes: the test sees no rollback", k-1)
			}
			break
		}
		// No second rollback happens after the first one is deleted.
		gone := b.revisions(t)[0]
		if err := b.api.Delete(t.Context(), &gone); err != nil {
			t.Fatal(err)
		}
		if err := next.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(b.revisions(t)); got != 4 || b.told(t, 4).Status != metav1.ConditionTrue {
			t.Errorf("after the rollback was deleted there are %d revisions, and RolledBack is %+v", got, b.told(t, 4))
		}
	}
}

func (b *backend) isRolledBackOnce(t *testing.T, when string) {
	t.Helper()
	revisions := b.revisions(t)
	if len(revisions) != 5 || revisions[0].Name != "argocd-5" || revisions[0].Annotations[olmv1alpha1.RollbackOfAnnotation] != "argocd-2" {
		t.Fatalf("%s: there are %d revisions, the newest is %s, a rollback to %s", when, len(revisions), revisions[0].Name, revisions[0].Annotations[olmv1alpha1.RollbackOfAnnotation])
	}
	want := "argocd-5 brings back the content of argocd-2: argocd-4 did not succeed within 10 minutes"
	if c := b.told(t, 4); c == nil || c.Status != metav1.ConditionTrue || c.Reason != reasonDeadline || c.Message != want {
		t.Errorf("%s: RolledBack is %+v, want %q", when, c, want)
	}
	// The rollback itself misses its deadline, and is not rolled back.
	if c := b.told(t, 5); c != nil {
		t.Errorf("%s: argocd-5 is rolled back, or not: %+v", when, c)
	}
	head, _, err := b.heads.Get(t.Context(), "argocd")
	if err != nil || head.Highest != 5 || !head.Confirmed || !head.Succeeded {
		t.Errorf("%s: the head is %+v, %v", when, head, err)
	}
}

// TestRollbackOnceOfReplicas: a replica has lost the lease without noticing, and its cache is
// stale.
func TestRollbackOnceOfReplicas(t *testing.T) {
	b := chainOf(t, storetest.Client(t), "p")
	old, leader := b.process(0), b.process(0)
	old.behind = b.revisions(t)
	for range 2 {
		if err := leader.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.isRolledBackOnce(t, "behind")
	if old.asked != 0 {
		t.Error("the store was not asked before")
	}
	// The server refuses it even if it read the store just before the other replica wrote.
	if no := old.scope.rollBack(t.Context(), &old.behind[0], "argocd-2"); no == nil || no.reason != reasonRefused {
		t.Errorf("a second rollback of the same revision: %+v", no)
	}
	b.isRolledBackOnce(t, "at the same time")
}

func TestRollbackRefused(t *testing.T) {
	cases := map[string]struct {
		reason    string
		revisions []*olmv1alpha1.ClusterExtensionRevision
		highest   int64
		refusing  error
		asked     int
		want      string
		message   string
	}{
		"nothing before": {
			"a first revision", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck)}, 0, nil, 0, reasonNoTarget, "no earlier revision that has succeeded",
		},
		"none succeeded": {
			"what never worked is no way back", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck), numbered(3)}, 0, nil, 0, reasonNoTarget, "no earlier revision that has succeeded",
		},
		"empty": {
			"to go back to nothing is to uninstall", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck), numbered(3, succeeded)}, 0, nil, 0, reasonNoTarget, "no earlier revision that has succeeded",
		},
		"going": {
			"its content may be gone soon", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck), numbered(3, worked, finalized)}, 0, nil, 0, reasonNoTarget, "no earlier revision that has succeeded",
		},
		"a rollback": {
			"it would come back to the same", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck, annotated(olmv1alpha1.RollbackOfAnnotation, "argocd-2")), numbered(2, worked)},
			0, nil, 0, reasonIsRollback, "it is itself a rollback, to argocd-2",
		},
		"overtaken": {
			"there was a revision 7", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck), numbered(2, worked)}, 7, nil, 0, reasonOvertaken, "revision 7 was created since then",
		},
		"refused": {
			"the server knows more", []*olmv1alpha1.ClusterExtensionRevision{numbered(4, stuck), numbered(2, worked)}, 0, errors.New("things.x.io has objects stored as v2"), 1, reasonRefused,
			"the rollback to argocd-2 was refused: things.x.io has objects stored as v2",
		},
	}
	etcd := storetest.Client(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, etcd, name, tc.revisions...)
			if tc.highest > 0 {
				if err := b.heads.Confirm(t.Context(), "argocd", tc.highest, "gone", store.Row{}); err != nil {
					t.Fatal(err)
				}
			}
			p := b.process(0)
			p.refusing = tc.refusing
			for range 5 {
				if err := p.pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			c := b.told(t, 4)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.want || !strings.Contains(c.Message, tc.message) {
				t.Errorf("%s: RolledBack is %+v, want %s %q", tc.reason, c, tc.want, tc.message)
			}
			if p.asked != tc.asked {
				t.Errorf("asked %d times in five passes, want %d", p.asked, tc.asked)
			}
			if got := p.events(); strings.Count(strings.Join(got, "\n"), "Warning "+tc.want) != 1 {
				t.Errorf("want one event %s: %q", tc.want, got)
			}
		})
	}
}

func (p *process) events() []string {
	return (&setting{said: p.said}).events()
}

func (p *process) rollbacks() []string {
	return slices.DeleteFunc(p.events(), func(event string) bool {
		return !strings.Contains(event, " RolledBack ") && !strings.Contains(event, " Rollback")
	})
}

// TestRollbackRefusedIsTriedAgain: a refused rollback is retried with growing delays, until it
// succeeds.
func TestRollbackRefusedIsTriedAgain(t *testing.T) {
	b := chainOf(t, storetest.Client(t), "p")
	p := b.process(0)
	p.refusing = errors.New("not now")
	clock := clocktesting.NewFakeClock(noon.Add(10 * time.Minute))
	p.scope.Clock = clock
	var waits []string
	for range 9 {
		if err := p.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait := p.scope.next()
		waits = append(waits, wait.String())
		clock.Step(wait)
	}
	if diff := cmp.Diff("10s 20s 40s 1m20s 2m40s 5m20s 10m0s 10m0s 10m0s", strings.Join(waits, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(p.rollbacks()) != 1 {
		t.Error("the same refusal was told more than once")
	}
	p.refusing = nil
	for range 2 {
		if err := p.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.isRolledBackOnce(t, "in the end")
	if diff := cmp.Diff([]string{"Warning RolledBack argocd-5 brings back the content of argocd-2: argocd-4 did not succeed within 10 minutes"}, p.rollbacks()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNoRollback: cases without a failure, or without spec.onFailure: Rollback.
func TestNoRollback(t *testing.T) {
	extended := func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.ProgressDeadlineMinutes = 11 }
	cases := map[string]struct {
		reason string
		four   []func(*olmv1alpha1.ClusterExtensionRevision)
	}{
		"not asked for":  {"None is the default", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.OnFailure = olmv1alpha1.OnFailureNone }}},
		"not yet":        {"there is a minute left", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, extended}},
		"succeeded once": {"what fails later is no failed rollout", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, succeeded}},
		"paused":         {"nothing goes on", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, state(olmv1alpha1.LifecycleStatePaused)}},
		"archived":       {"somebody has decided", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, archived}},
		"being deleted":  {"somebody has decided", []func(*olmv1alpha1.ClusterExtensionRevision){stuck, finalized}},
	}
	etcd := storetest.Client(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, etcd, name, numbered(4, tc.four...), numbered(2, worked))
			p := b.process(0)
			for range 2 {
				if err := p.pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if p.asked != 0 || b.told(t, 4) != nil {
				t.Errorf("%s: asked %d times, RolledBack is %+v", tc.reason, p.asked, b.told(t, 4))
			}
		})
	}
}

// TestRolledBackByAPerson: status also reports rollbacks by users, and drops an earlier refusal.
func TestRolledBackByAPerson(t *testing.T) {
	before := numbered(2, worked)
	w := &writer{now: noon}
	w.status = before.Status
	w.set(olmv1alpha1.ConditionRolledBack, false, reasonRefused, "not now")
	next := numbered(3, annotated(olmv1alpha1.RollbackOfAnnotation, "argocd-1"))
	// A user of the host can have Penstock's own user name.
	for _, who := range []string{"alice", "system:apiserver"} {
		next.Status.RequestedBy = &olmv1alpha1.Requester{Username: who, Groups: []string{"system:authenticated"}}
		w.rolledBack(before, next)
		c := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionRolledBack)
		if want := "argocd-3 brings back the content of argocd-1, as " + who + " asked for"; c.Reason != reasonRequested || c.Message != want {
			t.Errorf("got %+v, want %q", c, want)
		}
	}
	next.Status.RequestedBy = &olmv1alpha1.Requester{Username: "system:apiserver", Groups: []string{"system:authenticated", "system:masters"}}
	w.rolledBack(before, next)
	if c := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionRolledBack); c.Reason != reasonDeadline {
		t.Errorf("Penstock has rolled back: %+v", c)
	}
	w.set(olmv1alpha1.ConditionRolledBack, false, reasonRefused, "not now")
	w.rolledBack(before, numbered(3))
	if meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionRolledBack) != nil {
		t.Error("a refusal is told although it is over")
	}
}
