package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

type fixture struct {
	client.Reader
	*Metrics
	registry *prometheus.Registry
	clock    *clocktesting.FakePassiveClock
	counter  *targetclient.Counter
	handler  toolscache.ResourceEventHandler
	unsynced bool
	broken   error
	items    []olmv1alpha1.ClusterExtensionRevision
}

func start(t *testing.T, revisions ...*olmv1alpha1.ClusterExtensionRevision) *fixture {
	t.Helper()
	f := &fixture{registry: prometheus.NewPedanticRegistry(), clock: clocktesting.NewFakePassiveClock(noon()), counter: &targetclient.Counter{}}
	var err error
	f.Metrics, err = Add(Options{Registry: f.registry, Informer: f, Reader: f, Clock: f.clock, Requests: f.counter})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range revisions {
		f.items = append(f.items, *r)
		f.handler.OnAdd(r, true)
	}
	return f
}

func (f *fixture) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.handler = h
	return nil, nil
}

func (f *fixture) HasSynced() bool { return !f.unsynced }

func (f *fixture) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*olmv1alpha1.ClusterExtensionRevisionList).Items = f.items
	return f.broken
}

func (f *fixture) put(r *olmv1alpha1.ClusterExtensionRevision) {
	i := slices.IndexFunc(f.items, func(old olmv1alpha1.ClusterExtensionRevision) bool { return old.Name == r.Name })
	if i < 0 {
		f.items = append(f.items, *r)
		f.handler.OnAdd(r, false)
		return
	}
	old := f.items[i]
	f.items[i] = *r
	f.handler.OnUpdate(&old, r)
}

func (f *fixture) drop(name string) {
	i := slices.IndexFunc(f.items, func(old olmv1alpha1.ClusterExtensionRevision) bool { return old.Name == name })
	old := f.items[i]
	f.items = slices.Delete(f.items, i, i+1)
	f.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: &old})
}

// series returns the series of metrics with a prefix, in expression syntax.
func (f *fixture) series(t *testing.T, prefix string) []string {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), prefix) {
			continue
		}
		for _, m := range family.GetMetric() {
			out = append(out, line(family, m))
		}
	}
	slices.Sort(out)
	return out
}

// line returns a sample as text; for a histogram, its count and sum. Labels are sorted by name.
func line(family *dto.MetricFamily, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
	}
	value := fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
	if h := m.GetHistogram(); h != nil {
		value = fmt.Sprintf("%d times, %g", h.GetSampleCount(), h.GetSampleSum())
	}
	return fmt.Sprintf("%s{%s} %s", family.GetName(), strings.Join(labels, ","), value)
}

type option func(*olmv1alpha1.ClusterExtensionRevision)

func revision(name string, number int64, options ...option) *olmv1alpha1.ClusterExtensionRevision {
	r := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, number), UID: types.UID(fmt.Sprintf("uid-%d", number))}}
	r.Spec.Revision, r.Spec.LifecycleState = number, olmv1alpha1.LifecycleStateActive
	for _, o := range options {
		o(r)
	}
	return r
}

func archived(r *olmv1alpha1.ClusterExtensionRevision) {
	r.Spec.LifecycleState = olmv1alpha1.LifecycleStateArchived
}

// is sets a condition with its transition time in seconds after noon.
func is(condition string, status metav1.ConditionStatus, seconds int) option {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
			Type: condition, Status: status, LastTransitionTime: metav1.NewTime(noon().Add(time.Duration(seconds) * time.Second))})
	}
}

func has(phase olmv1alpha1.PhaseStatus) option {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Status.Phases = append(r.Status.Phases, phase) }
}

func failing(reasons ...string) []olmv1alpha1.ObjectFailure {
	var out []olmv1alpha1.ObjectFailure
	for _, reason := range reasons {
		out = append(out, olmv1alpha1.ObjectFailure{Reason: reason})
	}
	return out
}

func TestRevisions(t *testing.T) {
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     []string
	}{
		"new": {
			reason: "a revision without status is known to exist", revision: revision("argo-cd", 7),
			want: []string{
				"clusterextensionrevision_info{extension=argo-cd,lifecycle=Active,name=argo-cd-7,revision=7} 1",
				"clusterextensionrevision_objects{name=argo-cd-7,state=Available} 0",
				"clusterextensionrevision_objects{name=argo-cd-7,state=Pending} 0",
				"clusterextensionrevision_objects{name=argo-cd-7,state=Superseded} 0",
				"clusterextensionrevision_objects{name=argo-cd-7,state=Unready} 0",
			},
		},
		"rolling out": {
			reason: "conditions have the status they have, objects are counted over all phases",
			revision: revision("a", 1, is("Available", metav1.ConditionFalse, -90),
				has(olmv1alpha1.PhaseStatus{Objects: 4, Applied: 4, Available: 3, Failing: failing("ProbeFailed")}),
				has(olmv1alpha1.PhaseStatus{Objects: 50, Applied: 20, Available: 20, Superseded: 5, Failing: failing("Collision", "Collision"), FailingOmitted: 6})),
			want: []string{
				"clusterextensionrevision_condition_seconds{condition=Available,name=a-1,status=False} 90",
				"clusterextensionrevision_condition{condition=Available,name=a-1,status=False} 1",
				"clusterextensionrevision_failing_objects{name=a-1,reason=Collision} 2",
				"clusterextensionrevision_failing_objects{name=a-1,reason=Omitted} 6",
				"clusterextensionrevision_failing_objects{name=a-1,reason=ProbeFailed} 1",
				"clusterextensionrevision_info{extension=a,lifecycle=Active,name=a-1,revision=1} 1",
				"clusterextensionrevision_objects{name=a-1,state=Available} 23",
				"clusterextensionrevision_objects{name=a-1,state=Pending} 25",
				"clusterextensionrevision_objects{name=a-1,state=Superseded} 5",
				"clusterextensionrevision_objects{name=a-1,state=Unready} 1",
			},
		},
		"archived": {
			reason:   "it is not available, and that is nobody's trouble",
			revision: revision("a", 1, archived, is("Available", metav1.ConditionFalse, 0), is("Progressing", metav1.ConditionFalse, 0)),
			want:     []string{"clusterextensionrevision_info{extension=a,lifecycle=Archived,name=a-1,revision=1} 1"},
		},
		"archived, not done": {
			reason: "what does not go away is somebody's trouble",
			revision: revision("a", 1, archived, is("Progressing", metav1.ConditionTrue, -5),
				has(olmv1alpha1.PhaseStatus{State: olmv1alpha1.PhaseStateArchived, Objects: 4})),
			want: []string{
				"clusterextensionrevision_condition_seconds{condition=Progressing,name=a-1,status=True} 5",
				"clusterextensionrevision_condition{condition=Progressing,name=a-1,status=True} 1",
				"clusterextensionrevision_info{extension=a,lifecycle=Archived,name=a-1,revision=1} 1",
			},
		},
		"clocks differ": {
			reason:   "nothing has lasted for less than no time",
			revision: revision("a", 1, archived, is("Progressing", metav1.ConditionTrue, 30)),
			want: []string{
				"clusterextensionrevision_condition_seconds{condition=Progressing,name=a-1,status=True} 0",
				"clusterextensionrevision_condition{condition=Progressing,name=a-1,status=True} 1",
				"clusterextensionrevision_info{extension=a,lifecycle=Archived,name=a-1,revision=1} 1",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, start(t, tc.revision).series(t, "clusterextension")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleting(t *testing.T) {
	r := revision("a", 1)
	now := metav1.NewTime(noon())
	r.DeletionTimestamp = &now
	got := start(t, r).series(t, catalogue.Info)
	if diff := cmp.Diff([]string{"clusterextensionrevision_info{extension=a,lifecycle=Deleting,name=a-1,revision=1} 1"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestNoAnswer: an empty cache exposes nothing, and a failing cache reports an error instead of a
// part of the series.
func TestNoAnswer(t *testing.T) {
	f := start(t, revision("a", 1))
	f.unsynced = true
	if got := f.series(t, "clusterextension"); len(got) > 0 {
		t.Errorf("an empty cache tells %v", got)
	}
	f.unsynced, f.broken = false, errors.New("the cache is closed")
	if _, err := f.registry.Gather(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("an error of the cache is told as %v", err)
	}
}

func TestTransitions(t *testing.T) {
	f := start(t, revision("a", 1, is("Available", metav1.ConditionTrue, -60)))
	if got := f.series(t, catalogue.Transitions); len(got) > 0 {
		t.Errorf("what was there before the term is no transition: %v", got)
	}
	f.put(revision("a", 1, is("Available", metav1.ConditionFalse, 30)))
	f.put(revision("a", 1, is("Available", metav1.ConditionTrue, 40), is("Ready", metav1.ConditionTrue, 40)))
	f.put(revision("a", 1, is("Available", metav1.ConditionTrue, 40), is("Ready", metav1.ConditionTrue, 40)))
	f.put(revision("b", 1))
	f.put(revision("b", 1, is("Ready", metav1.ConditionTrue, 50)))
	want := []string{
		"clusterextensionrevision_condition_transitions_total{condition=Available,name=a-1,status=False} 1",
		"clusterextensionrevision_condition_transitions_total{condition=Available,name=a-1,status=True} 1",
		"clusterextensionrevision_condition_transitions_total{condition=Ready,name=a-1,status=True} 1",
		"clusterextensionrevision_condition_transitions_total{condition=Ready,name=b-1,status=True} 1",
	}
	if diff := cmp.Diff(want, f.series(t, catalogue.Transitions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = []string{
		"clusterextensionrevision_condition_duration_seconds{condition=Available,status=False} 1 times, 10",
		"clusterextensionrevision_condition_duration_seconds{condition=Available,status=True} 1 times, 90",
	}
	if diff := cmp.Diff(want, f.series(t, catalogue.Durations)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeleted: a deleted revision has no series, also after late events.
func TestDeleted(t *testing.T) {
	f := start(t, revision("a", 1), revision("b", 2))
	f.put(revision("a", 1, is("Ready", metav1.ConditionTrue, 0)))
	f.PhaseBegan("uid-1", "deploy")
	f.drop("a-1")
	for _, series := range f.series(t, "") {
		if strings.Contains(series, "a-1") {
			t.Errorf("it is gone, but there is %s", series)
		}
	}
	if len(f.began) > 0 {
		t.Errorf("its phases are remembered: %v", f.began)
	}
	if len(f.series(t, catalogue.Info)) != 1 {
		t.Error("the other one is gone, too")
	}
}

func TestPhases(t *testing.T) {
	f := start(t)
	step := func(seconds float64) {
		f.clock.SetTime(f.clock.Now().Add(time.Duration(seconds * float64(time.Second))))
	}
	f.PhaseComplete("one", "crds") // from an earlier term
	f.PhaseBegan("one", "deploy")
	step(2)
	f.PhaseBegan("two", "deploy")
	step(3)
	f.PhaseComplete("one", "deploy")
	f.PhaseComplete("one", "deploy") // the next pass finds the same
	step(5)
	f.PhaseComplete("two", "deploy")
	want := []string{"penstock_rollout_phase_duration_seconds{phase=deploy} 2 times, 13"}
	if diff := cmp.Diff(want, f.series(t, catalogue.Phases)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRepairs(t *testing.T) {
	f := start(t)
	app, role := object("apps", "Deployment", "app"), object("rbac.authorization.k8s.io", "Role", "r")
	f.Repaired(app, "hpa")
	f.Repaired(app, "hpa")
	f.Contested(app)
	f.Contested(app) // the next pass finds the same
	f.Repaired(app, "hpa")
	f.Contested(app)
	f.Repaired(role, rollout.DeletedBy)
	f.Repaired(role, "")
	f.Contested(object("", "ConfigMap", "x"))
	want := []string{
		"penstock_contests_total{kind=ConfigMap,manager=unknown} 1",
		"penstock_contests_total{kind=Deployment.apps,manager=hpa} 2",
		"penstock_drift_repairs_total{kind=Deployment.apps,manager=hpa} 3",
		"penstock_drift_repairs_total{kind=Role.rbac.authorization.k8s.io,manager=(deleted)} 1",
		"penstock_drift_repairs_total{kind=Role.rbac.authorization.k8s.io,manager=unknown} 1",
	}
	got := append(f.series(t, catalogue.Contests), f.series(t, catalogue.Repairs)...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds: invented field managers, kinds and phases do not grow series or memory without limit.
func TestBounds(t *testing.T) {
	f := start(t)
	for i := range 5000 {
		id := object(fmt.Sprint("group", i), "Thing", fmt.Sprint(i))
		f.Repaired(id, fmt.Sprint("manager", i))
		f.Contested(id)
		f.Contested(object("", "ConfigMap", fmt.Sprint(i)))
		f.PhaseBegan("one", fmt.Sprint("phase", i))
		f.PhaseComplete("one", fmt.Sprint("phase", i))
	}
	if n := len(f.fights); n > maxFights {
		t.Errorf("%d fights are remembered", n)
	}
	for name, most := range map[string]int{catalogue.Repairs: maxKinds + 1, catalogue.Contests: 2 * (maxKinds + 1), catalogue.Phases: maxPhases + 1} {
		got := f.series(t, name)
		if len(got) > most {
			t.Errorf("%s has %d series", name, len(got))
		}
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "=other") }) {
			t.Errorf("%s has not what is left over: %v", name, got)
		}
	}
}

func (f *fixture) send(t *testing.T) {
	t.Helper()
	transport := f.counter.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	request, err := http.NewRequestWithContext(targetclient.Because(t.Context(), targetclient.Repair), http.MethodPatch, "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestRequests(t *testing.T) {
	f := start(t)
	for range 3 {
		f.send(t)
	}
	if diff := cmp.Diff([]string{"penstock_target_requests_total{reason=repair,verb=patch} 3"}, f.series(t, catalogue.Requests)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func object(group, kind, name string) manifest.ID {
	return manifest.ID{Group: group, Kind: kind, Namespace: "default", Name: name}
}

// BenchmarkCollect measures the largest expected cluster: 1,000 extensions with five revisions
// each.
func BenchmarkCollect(b *testing.B) {
	f := &fixture{registry: prometheus.NewRegistry(), clock: clocktesting.NewFakePassiveClock(noon()), counter: &targetclient.Counter{}}
	if _, err := Add(Options{Registry: f.registry, Informer: f, Reader: f, Clock: f.clock, Requests: f.counter}); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		conditions := []option{}
		for _, c := range []string{"Ready", "Available", "Progressing", "Succeeded", "Failing", "Stalled"} {
			conditions = append(conditions, is(c, metav1.ConditionFalse, 0))
		}
		for n := range int64(4) {
			f.items = append(f.items, *revision(fmt.Sprint("x", i), n, append(conditions, archived)...))
		}
		f.items = append(f.items, *revision(fmt.Sprint("x", i), 5, conditions...))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
