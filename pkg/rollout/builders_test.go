package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// failer has the methods common to testing.TB and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// saga is one chain in a model cluster, with the state that survives a restart of the process.
type saga struct {
	*model
	engine *Engine
	clock  *clocktesting.FakePassiveClock
	stored Inventory
	bodies map[manifest.Digest][]byte
	layers []Layer
	orphan map[int64]bool
	freeze *Freeze
	// reportDrift sets Work.ReportDrift.
	reportDrift bool
	competing   CompetingOwner
	budget      *Budget
	// takesFrom are the chains whose protected objects a revision may take.
	takesFrom map[int64]map[string]bool
	// deletesAdopted are the revisions whose adopted objects are deleted.
	deletesAdopted map[int64]bool
	// listed holds the objects of earlier layers, by revision.
	listed map[int64][]manifest.ID
	// owner is the chain; empty means argocd.
	owner string
	last  Report
}

func newSaga() *saga {
	s := &saga{
		model: newModel(), bodies: map[manifest.Digest][]byte{}, orphan: map[int64]bool{}, listed: map[int64][]manifest.ID{},
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)),
	}
	s.restart()
	return s
}

// restart starts a new process on the same store and cluster.
func (s *saga) restart() {
	s.dead, s.fuse, s.named, s.versions, s.news = false, -1, nil, nil, true
	s.deliver(len(s.changes))
	s.engine = New(Options{Writer: s.model, Reader: s.model, Observer: s.model, NamespaceContents: s.model, Names: testNames(), Clock: s.clock, Parallel: 1})
}

func (s *saga) Body(_ context.Context, ref manifest.Ref) ([]byte, error) {
	body, ok := s.bodies[ref.Digest]
	if !ok {
		return nil, fmt.Errorf("there is no manifest %s", ref.Digest)
	}
	return body, nil
}

func (s *saga) pass() (Report, error) {
	s.news = false
	report, err := s.engine.Reconcile(context.Background(), s.work())
	s.last = report
	return report, err
}

func (s *saga) work() Work {
	return Work{Owner: cmp.Or(s.owner, "argocd"), Layers: s.layers, Inventory: s.stored, Bodies: s, Orphan: s.orphan, Save: s.save, Freeze: s.freeze, CompetingOwner: s.competing, Budget: s.budget, ReportDrift: s.reportDrift, DeleteAdopted: s.deletesAdopted, TakesFrom: s.takesFrom}
}

// save counts as a write: the process may die before or after it.
func (s *saga) save(_ context.Context, inventory Inventory) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	happens, crash := s.write("save", manifest.Ref{})
	if happens {
		s.stored = inventory
	}
	return crash
}

// settle does passes until the chain is at rest. All workloads become ready and all watches catch
// up.
func (s *saga) settle(t failer) Report {
	t.Helper()
	var last Report
	var requests []string
	for range 200 {
		s.controllers()
		s.deliver(len(s.changes))
		s.spent()
		report, err := s.pass()
		if err != nil {
			t.Fatalf("reconciling: %v", err)
		}
		writes, reads := s.spent()
		if len(writes)+len(reads)+len(s.changes) == 0 && slices.Equal(failures(last), failures(report)) && len(s.unready()) == 0 {
			return report
		}
		last, requests = report, append(writes, reads...)
		// A chain whose next pass is much later is at rest until then.
		s.clock.SetTime(s.clock.Now().Add(min(max(time.Second, report.RequeueAfter), lastRetry)))
	}
	t.Fatalf("it does not come to rest: %v, and the last pass sent %v", failures(last), requests)
	return last
}

// unready returns the workloads whose controllers still have work.
func (s *saga) unready() []manifest.ID {
	var ids []manifest.ID
	for id, o := range s.objects {
		if counts(id.Kind) && o.readyAt != o.generation {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *saga) controllers() {
	for _, id := range s.unready() {
		s.alter(id, func(o *thing) { o.readyAt = o.generation })
	}
}

func failures(r Report) []string {
	var out []string
	for _, layer := range r.Layers {
		for _, phase := range layer.Phases {
			for _, f := range phase.Failures {
				out = append(out, fmt.Sprintf("%d/%s %s %s", layer.Revision, phase.Name, f.ID, f.Reason))
			}
		}
	}
	for _, f := range r.Leaving {
		out = append(out, fmt.Sprintf("leaving %s %s", f.ID, f.Reason))
	}
	return out
}

type readiness struct{}

func (readiness) For(kind schema.GroupKind) probe.Probe {
	if counts(kind.Kind) {
		return readiness{}
	}
	return nil
}

func (readiness) Reads() probe.Reads { return probe.Reads{Status: true} }

func (readiness) Probe(o *unstructured.Unstructured) probe.Verdict {
	if ready, _, _ := unstructured.NestedBool(o.Object, "status", "ready"); ready {
		return probe.Verdict{Status: probe.True}
	}
	return probe.Verdict{Status: probe.False, Message: "is not ready"}
}

// refOf parses "ConfigMap a/x", "Deployment.apps a/x" or, in another version than v1,
// "Widget.example.com/v2 a/x".
func refOf(object string) manifest.Ref {
	kind, name, _ := strings.Cut(object, " ")
	kind, version, _ := strings.Cut(kind, "/")
	namespace, name, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	gk := schema.ParseGroupKind(kind)
	return manifest.Ref{ID: manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}, Version: cmp.Or(version, "v1")}
}

// script builds a revision:
//
//	s.revision(1).phase("config", "ConfigMap a/x=1").phase("deploy", "Deployment.apps a/y=1")
type script struct {
	saga   *saga
	number int64
	adopt  stage.Adoption
	phases []stage.Phase
	paused bool
	levels bool
}

// byLevels marks the revision as a first installation with install levels.
func (r *script) byLevels() *script {
	r.levels = true
	return r
}

func (s *saga) revision(number int64) *script { return &script{saga: s, number: number} }

func (r *script) adopting(a stage.Adoption) *script {
	r.adopt = a
	return r
}

// phase adds a phase of objects with their content: a value and more keys, as in "ConfigMap
// a/x=1,more". An @ precedes the install level of a create-only object: "ConfigMap a/x=1@1".
func (r *script) phase(name string, objects ...string) *script {
	p := stage.Phase{Name: name}
	for _, object := range objects {
		object, level, createOnly := strings.Cut(object, "@")
		object, value, _ := strings.Cut(object, "=")
		data := map[string]any{}
		for i, key := range strings.Split(value, ",") {
			if i == 0 {
				data["value"] = key
			} else {
				data[key] = "set"
			}
		}
		ref := refOf(object)
		metadata := map[string]any{"name": ref.Name}
		if ref.Namespace != "" {
			metadata["namespace"] = ref.Namespace
		}
		raw, err := json.Marshal(map[string]any{
			"apiVersion": ref.APIVersion(), "kind": ref.Kind, "metadata": metadata, "data": data,
		})
		if err != nil {
			panic(err)
		}
		made, err := manifest.Digester{}.FromJSON(raw)
		if err != nil {
			panic(err) // a mistake in a test
		}
		r.saga.bodies[made.Digest] = made.JSON
		step := stage.Step{Ref: made.Ref, Policy: stage.Policy{CreateOnly: createOnly}}
		if level == "1" {
			step.Level = 1
		}
		p.Steps = append(p.Steps, step)
	}
	r.phases = append(r.phases, p)
	return r
}

func (r *script) layer() Layer {
	for _, phase := range r.phases {
		for i := range phase.Steps {
			phase.Steps[i].Policy.Adopt = r.adopt
		}
	}
	stages, err := stage.Compile(r.phases, stage.Options{Probes: readiness{}, Levels: r.levels})
	if err != nil {
		panic(err) // a mistake in a test
	}
	return Layer{Key: fmt.Sprintf("uid-of-%d", r.number), Revision: r.number, Stages: stages, Paused: r.paused, Levels: r.levels}
}

// roll makes revisions the layers of the chain, newest first, and settles.
func (s *saga) roll(t testing.TB, revisions ...*script) Report {
	t.Helper()
	s.become(revisions...)
	return s.settle(t)
}

func (s *saga) become(revisions ...*script) {
	s.layers, s.news = nil, true
	for _, r := range revisions {
		s.layers = append(s.layers, r.layer())
		s.listed[r.number] = nil
		for _, phase := range r.phases {
			for _, step := range phase.Steps {
				s.listed[r.number] = append(s.listed[r.number], step.ID)
			}
		}
	}
}

// content returns the value of an object, or "absent".
func (s *saga) content(object string) string {
	o := s.objects[refOf(object).ID]
	if o == nil {
		return "absent"
	}
	return o.fields["data:value"].value
}

func sortedIDs(entries map[manifest.ID]Entry) []manifest.ID {
	return slices.SortedFunc(maps.Keys(entries), manifest.ID.Compare)
}
