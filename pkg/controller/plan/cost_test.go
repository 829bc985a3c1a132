package plan

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

type knobs struct {
	n     int
	waits []profile.Wait
}

func knob(i int) manifest.ID {
	return manifest.ID{Group: "knobs.test", Kind: "Knob", Name: fmt.Sprintf("knob-%02d", i)}
}

func (knobs) Name() v1alpha1.ProfileName { return v1alpha1.ProfileLoadAwareRebalancing }
func (knobs) Description() string        { return "many knobs" }

func (knobs) Requires() []profile.Requirement {
	return []profile.Requirement{{Definition: "knobs.knobs.test", Kind: schema.GroupKind{Group: "knobs.test", Kind: "Knob"}, Install: "knobs", Objects: true}}
}

func (k knobs) Items(_ profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Item, error) {
	var items []profile.Item
	for i := range k.n {
		value := int64(1)
		if i == 0 && options != nil {
			value = int64(*options.LoadAwareRebalancing.DeschedulingIntervalSeconds)
		}
		items = append(items, profile.Item{Name: knob(i).Name, Impact: v1alpha1.ImpactLow, Object: map[string]any{
			"apiVersion": "knobs.test/v1", "kind": "Knob", "metadata": map[string]any{"name": knob(i).Name},
			"spec": map[string]any{"value": value},
		}, Waits: k.waits})
	}
	return items, nil
}

// TestCosts counts requests to the cluster, without watches. The first computation costs one
// request for each target, and a later one a request for each changed target. All other phases cost
// none.
func TestCosts(t *testing.T) {
	const n = 20
	l := newStore(t).newLab(t, knobs{n: n})
	for i := range n / 2 {
		// Half of the targets exist, some with a value of another manager.
		l.cluster.set(knob(i), "argocd", int64(i%3), "spec", "value")
		l.cluster.set(knob(i), "argocd", "theirs", "spec", "other")
	}
	costs := func(what string, most int, do func()) {
		t.Helper()
		l.cluster.spent()
		do()
		l.settle()
		if spent := l.cluster.spent(); len(spent) > most {
			t.Errorf("%s costs %d requests, at most %d: %v", what, len(spent), most, spent)
		}
	}
	passes := func(what string) {
		t.Helper()
		costs(what, 0, func() {
			for range 5 {
				l.must(l.pass("a"))
			}
		})
	}
	costs("planning", n, func() { l.must(l.create("a")); l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict") })
	passes("a plan that is reviewed")
	costs("planning the same again", 0, func() { l.must(l.retry("a")); l.settle() })
	costs("the same under another policy", 0, func() { l.must(l.edit("a", take)); l.is("a", v1alpha1.PhaseReviewRequired) })
	costs("one manifest of n", 1, func() { l.must(l.edit("a", interval(120))); l.is("a", v1alpha1.PhaseReviewRequired) })
	costs("one target of n", 1, func() {
		l.cluster.set(knob(3), "argocd", "changed", "spec", "other")
		l.is("a", v1alpha1.PhaseReviewRequired, "PlanStale")
		l.must(l.retry("a"))
		l.is("a", v1alpha1.PhaseReviewRequired)
	})
	costs("one that is there before it is seen", 3, func() {
		l.cluster.frozen = map[manifest.ID]*unstructured.Unstructured{knob(15): nil}
		l.cluster.set(knob(15), "argocd", "late", "spec", "other")
		l.must(l.edit("a", interval(60)))
		l.must(l.retry("a"))
		l.settle()
		l.cluster.frozen = nil
	})
	l.must(l.retry("a"))
	l.approved()
	l.is("a", v1alpha1.PhaseCompleted)
	l.must(l.pass("a"))
	passes("a plan that is in effect")
	costs("drift", 1, func() { l.cluster.set(knob(1), "mallory", int64(9), "spec", "value"); l.is("a", v1alpha1.PhaseDrifted) })
	passes("a plan that is drifted")
	l.must(l.edit("a", action(hco.ActionIgnore)))
	l.settle()
	passes("a plan that is ignored")
	if len(l.cluster.watched) > 0 {
		t.Errorf("watches of a plan that is ignored: %v", l.cluster.watched)
	}
}

// TestLateWatch: if the cluster reports a target that the watch has not shown yet, the cluster is
// right.
func TestLateWatch(t *testing.T) {
	l := newStore(t).newLab(t, knobs{n: 1})
	l.cluster.set(knob(0), "argocd", int64(7), "spec", "value")
	l.cluster.frozen = map[manifest.ID]*unstructured.Unstructured{knob(0): nil}
	l.must(l.create("a", take))
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	if item := plan.Status.Items[0]; item.Action != v1alpha1.ItemUpdate || len(item.Takes) != 1 {
		t.Errorf("the plan is to %s, and takes %+v", item.Action, item.Takes)
	}
}
