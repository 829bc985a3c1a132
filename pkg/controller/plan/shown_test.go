package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan/livediff"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// dressed adds to a finished target what real targets also have: defaults, status, and annotations
// of owners, kubectl and other plans.
func dressed(dice *rand.Rand, live *unstructured.Unstructured) {
	flip := func() bool { return dice.IntN(2) == 0 }
	annotations := map[string]string{}
	if flip() {
		raw, err := json.Marshal(live.Object)
		if err != nil {
			panic(err) // it is a manifest
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(raw) + "\n"
	}
	if flip() {
		annotations["example.com/team"] = "compute"
	}
	if flip() {
		annotations[v1alpha1.GovernedByAnnotation], annotations[v1alpha1.AppliedHashAnnotation] = "another", "sha256:another"
	}
	if flip() {
		annotations["penstock.dev/applied"], annotations["penstock.dev/teardown"] = "sha256:a", "perhaps"
	}
	if flip() {
		live.SetAnnotations(annotations) // sometimes an empty map
	}
	if flip() {
		labels := live.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["example.com/tier"], labels["penstock.dev/chain"] = "infra", "descheduler"
		live.SetLabels(labels)
	}
	if flip() {
		live.SetFinalizers([]string{"example.com/keep"})
		live.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u"}})
	}
	spec, _ := live.Object["spec"].(map[string]any)
	if flip() && spec != nil {
		spec["logLevel"], spec["observedConfig"], spec["none"] = "Normal", map[string]any{"a": []any{int64(1), 2.5}, "b": nil}, []any{}
	}
	if flip() {
		live.Object["status"] = map[string]any{"generation": int64(3), "conditions": []any{map[string]any{"type": "Degraded", "status": "False"}}}
	}
}

// targetsIn returns the targets that a profile creates in an empty cluster.
func targetsIn(t *testing.T, l *lab, p profile.Profile) []*unstructured.Unstructured {
	t.Helper()
	facts, err := l.cluster.Facts()
	if err != nil {
		t.Fatal(err)
	}
	items, err := p.Items(facts, nil)
	if err != nil {
		t.Fatal(err)
	}
	var targets []*unstructured.Unstructured
	for _, item := range items {
		targets = append(targets, (&unstructured.Unstructured{Object: item.Object}).DeepCopy())
	}
	return targets
}

// diff returns the subresource diff of a plan for a user with all rights.
func (l *lab) diff(name string) []v1alpha1.PlanDiffItem {
	l.t.Helper()
	return l.diffFor(authorizerfactory.NewAlwaysAllowAuthorizer(), name)
}

func (l *lab) diffFor(may authorizer.UnconditionalAuthorizer, name string) []v1alpha1.PlanDiffItem {
	l.t.Helper()
	found, err := l.storage.Plan.Get(as("reader"), name, &metav1.GetOptions{})
	l.must(err)
	differ := &livediff.Differ{
		Authorizer: may, Target: l.cluster, Packs: l.packs,
		Previewer: preview.New(preview.Options{Reader: l.cluster, Trier: l.cluster, Names: planwork.Names()}),
	}
	items, err := differ.Diff(as("reader"), found.(*hco.ConfigurationPlan))
	l.must(err)
	return items
}

// TestNothingToDo: a plan whose intent equals its targets has no work and shows nothing. Other
// fields of the targets, their writers, and the kinds of write have no influence. It covers all
// kinds that profiles write.
func TestNothingToDo(t *testing.T) {
	store := newStore(t)
	for _, p := range []profile.Profile{loadawarerebalancing.Profile{}, knobs{n: 3}} {
		for seed := range uint64(25) {
			t.Run(fmt.Sprintf("%T/%d", p, seed), func(t *testing.T) {
				dice := rand.New(rand.NewPCG(seed, 7))
				l := store.newLab(t, p)
				l.cluster.pool("worker", 4)
				var ids []manifest.ID
				for _, target := range targetsIn(t, l, p) {
					kind := target.GroupVersionKind()
					id := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: target.GetNamespace(), Name: target.GetName()}
					ids = append(ids, id)
					dressed(dice, target)
					if dice.IntN(2) == 0 {
						spec, _ := target.DeepCopy().Object["spec"].(map[string]any)
						l.cluster.applies(id, "argocd", spec)
					}
					l.cluster.alter(id, []string{"kubectl-client-side-apply", "operator", "hco-governance/LoadAwareRebalancing"}[dice.IntN(3)], func(object map[string]any) {
						for key, value := range target.Object {
							object[key] = value
						}
					})
					if dice.IntN(4) == 0 {
						l.cluster.objects[id].SetManagedFields(nil)
					}
				}
				l.must(l.create("a"))
				plan := l.is("a", v1alpha1.PhaseCompleted, "everything is already as the plan says")
				if plan.Status.Diff != "" || plan.Status.Run != 0 {
					t.Errorf("the plan has done something in run %d:\n%s", plan.Status.Run, plan.Status.Diff)
				}
				for i, item := range l.diff("a") {
					if item.Diff != "" || item.Stale || item.Message != "it is as it should be" {
						t.Errorf("the subresource diff says of %s: %s\n%s", ids[i], item.Message, item.Diff)
					}
				}
				for i, item := range plan.Status.Items {
					if item.Diff != "" || item.Action != v1alpha1.ItemNone || len(item.Takes) > 0 {
						t.Errorf("%s is to be changed: %s, takes %v\n%s", ids[i], item.Action, item.Takes, item.Diff)
					}
				}
			})
		}
	}
}

// TestFinishedPlanShowsValues: readers of the targets see which fields a run has changed, with the
// former values, also after the run. They see no changes of other writers.
func TestFinishedPlanShowsValues(t *testing.T) {
	const former, foreign = "former-mode", "set-by-others"
	l := newStore(t).newLab(t).usual()
	l.cluster.set(descheduler(), "kubectl-create", former, "spec", "mode")
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.complete()
	l.cluster.set(descheduler(), "admin", foreign, "spec", "logLevel")
	of := func(items []v1alpha1.PlanDiffItem, id manifest.ID) v1alpha1.PlanDiffItem {
		for _, item := range items {
			if item.TargetRef.Name == id.Name {
				return item
			}
		}
		t.Fatalf("no item is about %s: %+v", id, items)
		return v1alpha1.PlanDiffItem{}
	}
	changed := of(l.diff("a"), descheduler())
	if !strings.Contains(changed.Diff, "-  mode: "+former+"\n+  mode: Automatic\n") || changed.Message != "it is as it should be; the diff shows what the run changed" {
		t.Errorf("%s\n%s", changed.Message, changed.Diff)
	}
	if strings.Contains(changed.Diff, "***") || strings.Contains(changed.Diff, foreign) || strings.Contains(changed.Diff, "penstock.dev") {
		t.Errorf("a value is hidden, or is not of the run:\n%s", changed.Diff)
	}
	if created := of(l.diff("a"), psi()); !strings.Contains(created.Diff, "--- /dev/null") || !strings.Contains(created.Diff, "psi=1") {
		t.Errorf("what the run created is not shown: %+v", created)
	}
	for _, item := range l.diffFor(authorizerfactory.NewAlwaysDenyAuthorizer(), "a") {
		if item.Diff != "" || !strings.HasPrefix(item.Message, "you cannot get ") {
			t.Errorf("somebody who cannot read the target sees %+v", item)
		}
	}
	reads := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "get" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "", nil
	})
	if read := of(l.diffFor(reads, "a"), descheduler()); !strings.Contains(read.Diff, "-  mode: "+former+"\n") || !strings.HasPrefix(read.Message, "you cannot patch ") {
		t.Errorf("somebody who may read the target alone sees %+v", read)
	}

	// A target that differs from the plan shows which fields would be changed back.
	l.cluster.set(descheduler(), "mallory", "drifted", "spec", "mode")
	l.is("a", v1alpha1.PhaseDrifted)
	if drifted := of(l.diff("a"), descheduler()); !strings.Contains(drifted.Diff, "-  mode: drifted\n+  mode: Automatic\n") || strings.Contains(drifted.Diff, former) {
		t.Errorf("%s\n%s", drifted.Message, drifted.Diff)
	}
}

// TestStatusShowsNoTarget: a plan shows no values of its targets in any phase, because not every
// reader of a plan may read the targets.
func TestStatusShowsNoTarget(t *testing.T) {
	const canary = "canary-in-the-target"
	l := newStore(t).newLab(t).usual()
	l.cluster.alter(descheduler(), "kubectl-client-side-apply", func(o map[string]any) {
		spec := o["spec"].(map[string]any)
		spec["mode"], spec["logLevel"], spec["profiles"] = canary, canary, []any{"AffinityAndTaints", canary}
		spec["evictionLimits"] = map[string]any{"total": canary}
		spec["profileCustomizations"] = map[string]any{"namespaces": []any{map[string]any{"name": canary}}}
		metadata := o["metadata"].(map[string]any)
		metadata["annotations"] = map[string]any{corev1.LastAppliedConfigAnnotation: canary, "example.com/x": canary}
	})
	l.cluster.set(psi(), "admin", canary, "spec", "kernelType")
	l.cluster.set(psi(), "admin", []any{canary}, "spec", "kernelArguments")
	silent := func(plan *v1alpha1.ConfigurationPlan) {
		raw, err := json.Marshal(plan)
		l.must(err)
		if strings.Contains(string(raw), canary) || strings.Contains(plan.Status.Diff, "AffinityAndTaints") {
			t.Errorf("plan %s is %s and shows what a target has:\n%s", plan.Name, plan.Status.Phase, raw)
		}
	}
	l.stored = silent
	l.must(l.create("a", take))
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	for _, want := range []string{
		"-  mode: \"***\"\n", "+  mode: Automatic\n", "+  deschedulingIntervalSeconds: 60\n", "+  - KubeVirtRelieveAndMigrate\n", "-    total: \"***\"\n", "+    total: 5\n", "+  - psi=1\n",
	} {
		if !strings.Contains(plan.Status.Diff, want) {
			t.Errorf("the diff does not have %q:\n%s", want, plan.Status.Diff)
		}
	}
	l.complete()
	l.cluster.set(descheduler(), "mallory", canary, "spec", "mode")
	l.is("a", v1alpha1.PhaseDrifted, ".spec.mode was changed by mallory")
	l.must(l.edit("a", action(hco.ActionDryRun)))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.must(l.rollback("a", 1))
	plan = l.is("a", v1alpha1.PhaseReviewRequired)
	if !strings.Contains(plan.Status.Diff, "+  mode: \"*** (another value)\"\n") && !strings.Contains(plan.Status.Diff, "total: \"*** (another value)\"\n") {
		t.Errorf("the diff of the rollback:\n%s", plan.Status.Diff)
	}
	l.approved()
	l.settle()
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted, "Restored")
}
