package plan

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/highdensityswap"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// rolling is a plan of HighDensitySwap on a random cluster, with its operator, random faults, and
// the invariants.
type rolling struct {
	*lab
	*rapid.T
	operator *operator
	sizes    map[string]int
	dropIns  bool
	// before is the HyperConverged before the plan.
	before any
	// items holds the files and units of each written item.
	items map[string]profile.NodeConfig
}

func ofSwap(p *hco.ConfigurationPlan) {
	p.Spec.Profile = hco.ProfileHighDensitySwap
	p.Spec.Options = &hco.PlanOptions{HighDensitySwap: &hco.HighDensitySwapOptions{SwapSource: hco.SwapSourceFile, FileSizeMiB: ptr.To[int32](2048)}}
}

func (s *storeOf) newRolling(t *testing.T, r *rapid.T) *rolling {
	l := s.newLab(t, highdensityswap.Profile{})
	v := &rolling{lab: l, T: r, sizes: map[string]int{"worker": rapid.IntRange(0, 3).Draw(r, "workers")}, items: map[string]profile.NodeConfig{}}
	if rapid.Bool().Draw(r, "custom pool") {
		v.sizes["infra"] = rapid.IntRange(0, 2).Draw(r, "nodes of it")
	}
	v.dropIns = rapid.Bool().Draw(r, "drop-ins")
	v.operator = newOperator(l, v.dropIns, v.sizes)
	l.cluster.alter(hyperConvergedID(), "admin", func(object map[string]any) {
		object["spec"] = map[string]any{"virtualization": map[string]any{"liveMigrationConfig": map[string]any{"parallelMigrationsPerCluster": int64(7)}}, "other": "value"}
		if rapid.Bool().Draw(r, "a ratio before") {
			object["spec"].(map[string]any)["virtualization"].(map[string]any)["higherWorkloadDensity"] = map[string]any{"memoryOvercommitPercentage": int64(110)}
		}
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	})
	v.before = l.cluster.value(hyperConvergedID(), "spec")
	l.cluster.written, l.stored = v.wrote, v.told
	return v
}

// wrote checks a write before it happens, while the cluster is locked: it sets only declared
// fields, and all nodes have the earlier items.
func (v *rolling) wrote(ref manifest.Ref, body []byte, _ *unstructured.Unstructured) {
	plan := v.plan("a")
	for i, item := range plan.Status.Items {
		if refOf(item).ID != ref.ID {
			continue
		}
		for _, earlier := range plan.Status.Items[:i] {
			if earlier.State != v1alpha1.ItemCompleted && earlier.State != v1alpha1.ItemSkipped {
				v.Errorf("%s is written while %s is %s", item.Name, earlier.Name, earlier.State)
			}
			if wanted, rolls := v.items[earlier.Name]; rolls && plan.Spec.RestoreRun == 0 {
				if lacking := v.operator.lacking(wanted); lacking != "" {
					v.Errorf("%s is written, and %s lacks %s", item.Name, lacking, earlier.Name)
				}
			}
		}
		if body != nil && plan.Spec.RestoreRun == 0 {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(body); err != nil {
				v.Fatal(err)
			}
			switch item.Name {
			case highdensityswap.ItemSwap:
				v.items[item.Name] = profile.NodeConfigOf(object)
			case highdensityswap.ItemKubelet:
				made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{kubeletFile(false)}}}}}}
				v.items[item.Name] = profile.NodeConfigOf(made)
			}
		}
		return
	}
	v.Errorf("%s is written, which is no target of the plan", ref.ID)
}

// told checks a status when it is stored: all nodes have the completed items.
func (v *rolling) told(plan *v1alpha1.ConfigurationPlan) {
	for _, item := range plan.Status.Items {
		if wanted, rolls := v.items[item.Name]; rolls && item.State == v1alpha1.ItemCompleted && plan.Spec.RestoreRun == 0 && plan.Status.Phase == v1alpha1.PhaseInProgress {
			if lacking := v.operator.lacks(wanted); lacking != "" {
				v.Errorf("%s is told to be completed, and %s lacks it", item.Name, lacking)
			}
		}
	}
}

func (v *rolling) acts() map[string]func() {
	pools := slices.Sorted(maps.Keys(v.sizes))
	pool := func() string { return rapid.SampledFrom(pools).Draw(v.T, "pool") }
	o := v.operator
	return map[string]func(){
		"take":         o.take,
		"render":       func() { o.render(pool()) },
		"advance":      func() { o.advance(pool()) },
		"report":       func() { o.report(pool()) },
		"through":      o.through,
		"pause":        func() { o.set(poolID(pool()), "admin", true, "spec", "paused") },
		"unpause":      func() { o.set(poolID(pool()), "admin", false, "spec", "paused") },
		"stick":        func() { v.stick(pool(), true) },
		"unstick":      func() { v.stick(pool(), false) },
		"unrenderable": func() { o.unrenderable[pool()] = true },
		"renderable":   func() { clear(o.unrenderable) },
		"re-render": func() {
			// Another user's configuration, while nodes are changing.
			o.alter(configID("98-other"), "admin", func(config map[string]any) {
				labelled(config, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
				config["spec"] = map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{
					map[string]any{"path": "/etc/other", "contents": map[string]any{"source": "data:," + rapid.StringMatching("[ab]").Draw(v.T, "content")}}}}}}
			})
		},
		"other field": func() {
			o.set(hyperConvergedID(), "admin", rapid.SampledFrom([]any{"value", "another"}).Draw(v.T, "other"), "spec", "other")
		},
		"minutes": func() { v.clock.SetTime(v.clock.Now().Add(6 * time.Minute)) },
		"restart": v.restart,
		"crash":   func() { v.fuse.arm(rapid.IntRange(0, 5).Draw(v.T, "writes"), rapid.Bool().Draw(v.T, "lands")) },
		"blind":   func() { o.mu.Lock(); o.blind = !o.blind; o.mu.Unlock() },
		"refuse": func() {
			if o.refuse = nil; rapid.IntRange(0, 3).Draw(v.T, "refused") == 0 {
				v.refusing(hyperConvergedID())
			}
		},
		"again": v.again,
	}
}

func (v *rolling) stick(pool string, stuck bool) {
	for i, node := range v.operator.nodes[pool] {
		switch {
		case !stuck:
			node.stuck = false
		case i == 0:
			node.stuck, node.ready = true, false
		}
	}
}

// again computes an ended plan again, and approves a waiting plan.
func (v *rolling) again() {
	switch plan := v.plan("a"); plan.Status.Phase {
	case v1alpha1.PhaseFailed, v1alpha1.PhaseExpired:
		_ = v.retry("a")
	case v1alpha1.PhaseReviewRequired:
		_ = v.approve("a", plan.Status.PlanHash)
	}
}

func (v *rolling) passes(n int) {
	for range n {
		_ = v.pass("a")
		if v.fuse.dead() {
			v.restart()
		}
	}
}

// calm ends all faults, and lets the operator finish.
func (v *rolling) calm() {
	v.fuse.mend()
	v.operator.blind, v.operator.refuse = false, nil
	clear(v.operator.unrenderable)
	for pool := range v.sizes {
		v.stick(pool, false)
		v.operator.set(poolID(pool), "admin", false, "spec", "paused")
	}
	for range 12 {
		v.operator.through()
		v.settle()
		v.again()
		v.settle()
	}
}

// undeclared returns the HyperConverged without the fields of the plan.
func undeclared(spec any) any {
	out := (&unstructured.Unstructured{Object: map[string]any{"spec": spec}}).DeepCopy().Object
	unstructured.RemoveNestedField(out, "spec", "virtualization", "higherWorkloadDensity")
	unstructured.RemoveNestedField(out, "spec", "other") // other writers change it
	return out
}

// TestRolloutsProperties: clusters, histories and faults are random. No item begins before all
// nodes have the earlier item. No undeclared field changes. A rollback restores the captured state.
// FULL=1 runs more of them.
func TestRolloutsProperties(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks != nil && checks.Value.String() == checks.DefValue && os.Getenv("FULL") == "" {
		if err := checks.Value.Set("15"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	store := newStore(t)
	reached := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		v := store.newRolling(t, r)
		v.must(v.create("a", take, ofSwap))
		v.passes(3)
		v.again()
		acts := v.acts()
		names := slices.Sorted(maps.Keys(acts))
		// Steps that continue the rollout are as likely as all other steps together.
		names = append(names, "take", "render", "render", "advance", "advance", "advance", "report", "report", "report", "again")
		for range rapid.IntRange(10, 50).Draw(r, "acts") {
			acts[rapid.SampledFrom(names).Draw(r, "act")]()
			v.passes(rapid.IntRange(0, 2).Draw(r, "passes"))
			for _, item := range v.plan("a").Status.Items {
				reached[item.Name+" "+string(item.State)]++
				for _, word := range []string{"is paused", "degraded", "cannot be rendered", "to be rendered"} {
					if strings.Contains(item.Message, word) {
						reached[word]++
					}
				}
			}
		}
		v.calm()
		if plan := v.plan("a"); plan.Status.Phase != v1alpha1.PhaseCompleted {
			v.Fatalf("when all is well the plan is %s", v.states())
		}
		for name, wanted := range v.items {
			if lacking := v.operator.lacks(wanted); lacking != "" {
				v.Errorf("the plan is completed, and %s lacks %s", lacking, name)
			}
		}
		if diff := cmp.Diff(undeclared(v.before), undeclared(v.cluster.value(hyperConvergedID(), "spec"))); diff != "" {
			v.Errorf("fields changed that the plan does not declare (-before +now):\n%s", diff)
		}
		v.back()
	})
	t.Logf("seen: %v", reached)
}

// back rolls back all runs, the newest first, and compares the result with the first state.
func (v *rolling) back() {
	for _, run := range v.history("a") {
		if err := v.rollback("a", run.Run); apierrors.IsConflict(err) {
			continue // it wrote nothing
		} else if err != nil {
			v.Fatalf("undoing run %d: %v", run.Run, err)
		}
		v.calm()
		if plan := v.plan("a"); plan.Status.Phase != v1alpha1.PhaseCompleted || plan.Spec.RestoreRun != run.Run {
			v.Fatalf("the way back before run %d is %s", run.Run, v.states())
		}
	}
	other := v.cluster.value(hyperConvergedID(), "spec", "other")
	want := (&unstructured.Unstructured{Object: map[string]any{"spec": v.before}}).DeepCopy()
	_ = unstructured.SetNestedField(want.Object, other, "spec", "other")
	if diff := cmp.Diff(want.Object["spec"], v.cluster.value(hyperConvergedID(), "spec")); diff != "" {
		v.Errorf("the HyperConverged is not as it was (-before +now):\n%s", diff)
	}
	for _, id := range []manifest.ID{configID("90-worker-penstock-swap"), kubeletConfigID("penstock-swap")} {
		if v.cluster.value(id, "spec") != nil {
			v.Errorf("%s is still there", id)
		}
	}
	for name, wanted := range v.items {
		if lacking := v.operator.lacks(wanted); lacking == "" && v.sizes["worker"]+v.sizes["infra"] > 0 {
			v.Errorf("the nodes still have %s", name)
		}
	}
}
