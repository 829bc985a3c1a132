//go:build integration

package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// TestRollout tests the scenarios of a chain, all at the same time on one cluster.
func TestRollout(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.runControllers()
	w.finalizeNamespaces()
	for name, scenario := range map[string]func(*testing.T, *chain){
		"install":            installsInStages,
		"gate":               gatesJudgeTheNewState,
		"upgrade":            upgrades,
		"prune-order":        prunesInReverse,
		"fallback":           fallsBack,
		"pause":              pauses,
		"collision":          collides,
		"collision-chain":    collidesWithAnotherChain,
		"collision-owner":    collidesWithAController,
		"adoption":           adopts,
		"adopt-others":       adoptsFromOthers,
		"adopt-watched":      adoptsWhatIsWatched,
		"adopt-restored":     adoptsRestored,
		"adopt-tried":        adoptsAsItWasTried,
		"adopt-unremovable":  adoptsWithWhatCannotGo,
		"yield":              yieldsToAutoscalers,
		"wiped":              survivesWipedManagedFields,
		"orphan":             orphans,
		"crd-guard":          guardsDefinitions,
		"crd-operator":       operatesUntilInstancesAreGone,
		"crd-operator-gone":  namesWhatHoldsInstances,
		"crd-deleted":        survivesDeletedDefinitions,
		"version-teardown":   tearsDownWhatWasWrittenInAGoneVersion,
		"version-upgrade":    upgradesBehindAGoneVersion,
		"version-together":   upgradesWithItsDefinition,
		"conversion-away":    tellsOfRefusalsThatLast,
		"immutable":          saysWhatToDoAboutImmutableFields,
		"teardown":           tearsDown,
		"mutating-webhook":   livesWithRewriting,
		"contested-live":     fightsNobody,
		"admission":          waitsForAdmission,
		"terminating":        waitsForNamespaces,
		"schema":             survivesNewSchemas,
		"aggregated-down":    survivesDeadServers,
		"no-managed-fields":  livesWithoutManagedFields,
		"quota":              waitsForQuota,
		"busy":               heedsRetryAfter,
		"conflicts":          survivesConflicts,
		"unreachable":        survivesCutRoads,
		"orphan-one":         leavesOne,
		"theirs":             leavesPeopleTheirs,
		"drift":              repairsDrift,
		"drift-unseen":       repairsWhatTheWatchHasNotSeen,
		"contested":          backsOff,
		"secret":             hidesSecrets,
		"preflight":          refusesWholePhases,
		"scope":              refusesWrongScopes,
		"unknown-kind":       waitsForKinds,
		"rights":             waitsForRights,
		"requests-namespace": countsRequestsOfOnePhase,
		"requests-adoption":  countsRequestsOfAdoption,
		"restart":            restartsForNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, w.in(t).chain(name))
		})
	}
}

// home creates the chain's namespace, for chains that do not contain it.
func (c *chain) home() string {
	c.t.Helper()
	c.create(namespace(c.name))
	return c.name
}

// value returns the value of a live object, or "absent".
func (c *chain) value(object map[string]any) string {
	c.t.Helper()
	live := c.get(id(object))
	if live == nil {
		return "absent"
	}
	return valueOf(live.Object)
}

func (c *chain) uid(object map[string]any) types.UID {
	c.t.Helper()
	live := c.get(id(object))
	if live == nil {
		c.t.Fatalf("%s is missing", id(object))
	}
	return live.GetUID()
}

func installsInStages(t *testing.T, c *chain) {
	ns := c.name
	definition := widgets("install.example.com", "Gadget", "gadgets")
	gadget := widget("install.example.com", "Gadget", ns, "g", "1")
	slow, last := deployment(ns, "slow", "1"), configMap(ns, "last", "1")
	one := rev(1).
		// This is the worst order. Waves correct it.
		phase("base", gadget, configMap(ns, "x", "1"), namespace(ns), definition).
		phase("deploy", slow).
		phase("last", last)
	mark := c.Audit().Mark()
	c.become(one)
	c.stuck("1/deploy Deployment.apps install/slow: ProbeFailed")
	if got := c.value(last); got != "absent" {
		t.Errorf("the phase after a closed gate was begun: %s", got)
	}
	if err := c.available(c.get(id(slow))); err != nil {
		t.Fatal(err)
	}
	c.until("complete", complete)
	c.settled(t, one.objects()...)

	var order []string
	for _, r := range c.requests(mark).Where(plane.ByVerb("patch")) {
		if r.Code < 300 && !strings.Contains(r.URI, "dryRun") {
			order = append(order, r.Resource)
		}
	}
	slices.Sort(order[:2]) // both belong to one wave
	if diff := cmp.Diff([]string{"customresourcedefinitions", "namespaces", "configmaps", "gadgets", "deployments", "configmaps"}, order); diff != "" {
		t.Errorf("the order of writes (-want +got):\n%s", diff)
	}
	c.quiet()
}

func gatesJudgeTheNewState(t *testing.T, c *chain) {
	ns := c.home()
	slow := deployment(ns, "slow", "1")
	c.become(rev(1).phase("deploy", slow).phase("last", configMap(ns, "last", "1")))
	c.stuck("1/deploy Deployment.apps gate/slow: ProbeFailed")
	if err := c.available(c.get(id(slow))); err != nil {
		t.Fatal(err)
	}
	c.until("complete", complete)

	// The status still says that the old template is available.
	newer, last := deployment(ns, "slow", "2"), configMap(ns, "last", "2")
	c.become(rev(2).phase("deploy", newer).phase("last", last))
	c.stuck("2/deploy Deployment.apps gate/slow: ProbeFailed")
	if got := c.value(last); got != "1" {
		t.Errorf("the next phase was begun on an old verdict: %s", got)
	}
	if err := c.available(c.get(id(slow))); err != nil {
		t.Fatal(err)
	}
	c.until("complete", complete)
	c.settled(t, newer, last)
}

func upgrades(t *testing.T, c *chain) {
	ns := c.home()
	x, old, app := configMap(ns, "x", "1"), configMap(ns, "old", "1"), deployment(ns, "app", "1")
	one := rev(1).phase("base", x, old).phase("deploy", app)
	c.roll(one)
	kept := []types.UID{c.uid(x), c.uid(app)}

	x2, fresh := configMap(ns, "x", "2"), configMap(ns, "new", "2")
	two := rev(2).phase("base", x2, fresh).phase("deploy", app)
	c.roll(two, one)
	c.settled(t, x2, fresh, app, old)
	c.roll(two)
	c.settled(t, x2, fresh, app)
	if diff := cmp.Diff(kept, []types.UID{c.uid(x), c.uid(app)}); diff != "" {
		t.Errorf("objects were replaced:\n%s", diff)
	}
	c.quiet()
}

func prunesInReverse(t *testing.T, c *chain) {
	ns := c.home()
	a, b, last := configMap(ns, "a", "1"), configMap(ns, "b", "1"), configMap(ns, "c", "1")
	c.roll(rev(1).phase("first", a).phase("second", b).phase("third", last))
	c.patch(id(last), "somebody", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	c.seen(last) // a delete with an older resourceVersion would be refused and repeated
	mark := c.Audit().Mark()
	c.become()
	c.stuck("leaving ConfigMap prune-order/c: Terminating", "leaving ConfigMap prune-order/b: Waiting", "leaving ConfigMap prune-order/a: Waiting")
	if got := c.value(b); got != "1" {
		t.Errorf("the next object was deleted before the last one was gone: %s", got)
	}
	c.patch(id(last), "somebody", `{"metadata":{"finalizers":null}}`)
	c.until("gone", complete)
	var order []string
	for _, r := range c.requests(mark).Where(plane.ByVerb("delete")) {
		order = append(order, r.Name)
	}
	if diff := cmp.Diff([]string{"c", "b", "a"}, order); diff != "" {
		t.Errorf("the deletions (-want +got):\n%s", diff)
	}
	c.settled(t)
}

func fallsBack(t *testing.T, c *chain) {
	ns := c.home()
	x, old, app := configMap(ns, "x", "1"), configMap(ns, "old", "1"), deployment(ns, "slow", "1")
	one := rev(1).phase("base", x, old).phase("deploy", app)
	c.become(one)
	c.stuck("1/deploy Deployment.apps fallback/slow: ProbeFailed")
	if err := c.available(c.get(id(app))); err != nil {
		t.Fatal(err)
	}
	c.until("complete", complete)
	kept := []types.UID{c.uid(x), c.uid(old), c.uid(app)}

	fresh := configMap(ns, "new", "2")
	two := rev(2).phase("base", configMap(ns, "x", "2"), fresh).phase("deploy", deployment(ns, "slow", "2"))
	c.become(two, one)
	c.stuck("2/deploy Deployment.apps fallback/slow: ProbeFailed")
	c.settled(t, append(two.objects(), old)...)

	c.become(one)
	c.stuck("1/deploy Deployment.apps fallback/slow: ProbeFailed")
	if err := c.available(c.get(id(app))); err != nil {
		t.Fatal(err)
	}
	c.until("complete", complete)
	c.settled(t, one.objects()...)
	if diff := cmp.Diff(kept, []types.UID{c.uid(x), c.uid(old), c.uid(app)}); diff != "" {
		t.Errorf("objects were replaced:\n%s", diff)
	}
}

func pauses(t *testing.T, c *chain) {
	ns := c.home()
	x, old := configMap(ns, "x", "1"), configMap(ns, "old", "1")
	one := rev(1).phase("base", x, old)
	c.roll(one)
	one.paused = true
	c.become(one)
	mark := c.Audit().Mark()
	c.patch(id(x), "somebody", `{"data":{"value":"9"}}`)
	c.stuck("1/base ConfigMap pause/x: Paused")

	two := rev(2).phase("base", configMap(ns, "x", "2"))
	two.paused = true
	c.become(two)
	c.stuck("leaving ConfigMap pause/old: Paused")
	if requests := c.requests(mark); len(requests) > 0 {
		t.Errorf("a paused revision made requests:\n%s", requests)
	}
	two.paused = false
	c.roll(two)
	c.settled(t, two.objects()...)
}

func collides(t *testing.T, c *chain) {
	ns := c.home()
	theirs := configMap(ns, "theirs", "theirs")
	uid := c.create(theirs)
	one := rev(1).phase("first", configMap(ns, "first", "1")).
		phase("second", configMap(ns, "x", "1"), deployment(ns, "app", "1"), configMap(ns, "theirs", "1"))
	c.become(one)
	report := c.stuck("1/second ConfigMap collision/theirs: Collision")
	if text := messages(report); !strings.Contains(text, "was not made by this extension") {
		t.Errorf("the message does not say that the extension did not make it: %s", text)
	}
	if got := []string{c.value(one.objects()[1]), c.value(one.objects()[2])}; !slices.Equal(got, []string{"absent", "absent"}) {
		t.Errorf("objects of a phase with a collision were written: %v", got)
	}
	if live := c.get(id(theirs)); live.GetUID() != uid || valueOf(live.Object) != "theirs" || len(live.GetLabels())+len(live.GetAnnotations()) > 0 {
		t.Errorf("another owner's object was changed: %v", live)
	}
	// The watch by name starts after the first pass.
	c.until("quiet", func(rollout.Report) bool {
		_, presence := c.process.watches.Get(id(theirs))
		return presence == observe.Present
	})
	c.quiet()
	c.remove(id(theirs))
	c.until("complete", complete)
	c.settled(t, one.objects()...)
}

func collidesWithAnotherChain(t *testing.T, c *chain) {
	ns := c.home()
	shared := configMap(ns, "shared", "1")
	other := c.targetCluster.chain("other-chain")
	other.roll(rev(1).phase("base", shared))
	for name, adopt := range map[string]stage.Adoption{"never": stage.AdoptNever, "uncontrolled": stage.AdoptUncontrolled} {
		c.become(rev(1).adopting(adopt).phase("base", configMap(ns, "shared", "2")))
		report := c.stuck("1/base ConfigMap collision-chain/shared: Collision")
		if text := messages(report); !strings.Contains(text, `belongs to the extension "other-chain"`) {
			t.Errorf("%s: the message does not name the owner: %s", name, text)
		}
	}
	other.settled(t, shared)

	// A revision with AdoptAlways takes the object over. Its first owner does not take it back.
	taken := configMap(ns, "shared", "2")
	c.roll(rev(2).adopting(stage.AdoptAlways).phase("base", taken))
	c.settled(t, taken)
	other.stuck("1/base ConfigMap collision-chain/shared: Collision")
	other.roll()
	c.settled(t, taken)
}

func collidesWithAController(t *testing.T, c *chain) {
	ns := c.home()
	theirs := configMap(ns, "theirs", "theirs")
	theirs["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "Database", "name": "main", "uid": "6f4b2a1c-0000-0000-0000-000000000000", "controller": true}}
	c.create(theirs)
	c.become(rev(1).adopting(stage.AdoptUncontrolled).phase("base", configMap(ns, "theirs", "1")))
	report := c.stuck("1/base ConfigMap collision-owner/theirs: Collision")
	if text := messages(report); !strings.Contains(text, `controlled by Database "main"`) {
		t.Errorf("the message does not name the owner: %s", text)
	}
}

func adopts(t *testing.T, c *chain) {
	ns := c.home()
	theirs := configMap(ns, "x", "theirs")
	theirs["data"].(map[string]any)["more"] = "goes"
	uid := c.create(theirs)
	x := configMap(ns, "x", "1")
	c.roll(rev(1).adopting(stage.AdoptUncontrolled).phase("base", x))
	c.settled(t, x)
	live := c.get(id(x))
	if live.GetUID() != uid || live.Object["data"].(map[string]any)["more"] != nil {
		t.Errorf("the object was replaced: %v", live)
	}
	c.quiet()
}

func orphans(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("base", namespace(ns), configMap(ns, "x", "1")).phase("deploy", deployment(ns, "app", "1"))
	c.roll(one)
	before := map[string]types.UID{}
	for _, object := range one.objects() {
		before[id(object).String()] = c.uid(object)
	}
	c.orphan[1] = true
	c.roll()
	for _, object := range one.objects() {
		live := c.get(id(object))
		if live == nil || live.GetUID() != before[id(object).String()] || live.GetDeletionTimestamp() != nil {
			t.Errorf("%s was not left alone", id(object))
			continue
		}
		if seen := names().Observe(live); seen.Chain != "" || seen.Applied != "" || len(live.GetOwnerReferences()) > 0 {
			t.Errorf("%s still has our marks: %+v", id(object), seen)
		}
	}
	c.settled(t)
	// The object has no owner now. The chain does not take it without adoption.
	delete(c.orphan, 1)
	again := rev(2).phase("base", configMap(ns, "x", "2"))
	c.become(again)
	c.stuck("2/base ConfigMap orphan/x: Collision")
	c.roll(again.adopting(stage.AdoptUncontrolled))
	c.settled(t, again.objects()...)
}

func guardsDefinitions(t *testing.T, c *chain) {
	ns := c.home()
	group := "guard.example.com"
	definition, mine, x := widgets(group, "Guarded", "guardeds"), widget(group, "Guarded", ns, "mine", "1"), configMap(ns, "x", "1")
	c.roll(rev(1).phase("base", definition, x).phase("instances", mine))
	theirs := widget(group, "Guarded", ns, "theirs", "1")
	c.create(theirs)
	c.become()
	report := c.stuck("leaving CustomResourceDefinition.apiextensions.k8s.io guardeds.guard.example.com: InstancesExist")
	if text := messages(report); !strings.Contains(text, "crd-guard/theirs") || strings.Contains(text, "mine") || !report.Leaving[0].NeedsPerson {
		t.Errorf("want a message that names only the instance with a finalizer: %s", text)
	}
	if got := []string{c.value(mine), c.value(x), c.value(theirs)}; !slices.Equal(got, []string{"1", "1", "1"}) {
		t.Errorf("objects were deleted although the definition cannot be: %v", got)
	}
	c.remove(id(theirs))
	c.until("gone", complete)
	c.settled(t)
	if c.get(id(mine)) != nil || c.get(id(definition)) != nil {
		t.Error("the definition or its instances are left")
	}

	// With an acknowledgement, deleting the definition deletes its instances.
	c.roll(rev(2).phase("base", definition))
	c.create(theirs)
	c.become()
	c.stuck("leaving CustomResourceDefinition.apiextensions.k8s.io guardeds.guard.example.com: InstancesExist")
	c.allow["guardeds.guard.example.com"] = true
	c.process.wake()
	c.until("gone", complete)
}

func tearsDown(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("base", namespace(ns), clusterRole("teardown", "get")).phase("config", configMap(ns, "x", "1"), secret(ns, "s", nil)).
		phase("deploy", deployment(ns, "app", "1"))
	c.roll(one)
	bystander := configMap(ns, "bystander", "theirs")
	c.create(bystander)
	c.roll()
	c.settled(t)
}
