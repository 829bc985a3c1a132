package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	ext "github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
)

// three returns a world with three clusters that have version 1: a in the first wave, b and c in
// the second.
func three(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for name, ring := range map[string]string{"a": "0", "b": "1", "c": "1"} {
		w.join(name, "ring="+ring)
	}
	w.apply("app:1", canary()...)
	w.becomes("edge-1 ReviewRequired: a Pending, b Pending, c Pending")
	w.approve("edge-1")
	w.becomes("edge-1 Completed: a Succeeded, b Succeeded, c Succeeded")
	return w
}

func canary() []extensionset.Wave {
	return []extensionset.Wave{wave("canary", "0", nil), wave("rest", "", nil)}
}

// soaking returns the waves of canary; the first wave soaks.
func soaking(seconds int64) []extensionset.Wave {
	return []extensionset.Wave{wave("canary", "0", func(one *extensionset.Wave) { one.SoakSeconds = seconds }), wave("rest", "", nil)}
}

// upgrade requests a version, and approves the rollout with the number.
func (w *world) upgrade(number int, image string, waves ...extensionset.Wave) {
	w.Helper()
	w.apply(image, waves...)
	name := fmt.Sprintf("edge-%d", number)
	w.until(name+" waits for an approval", func() bool { return strings.HasPrefix(w.shown(), name+" ReviewRequired") })
	w.approve(name)
}

func (w *world) removal(policy string) {
	w.Helper()
	w.changeSet("alice", func(set *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(set.Object, policy, "spec", "removalPolicy")
	})
}

func (w *world) tearDown(policy string) {
	w.Helper()
	w.changeSet("alice", func(set *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(set.Object, policy, "spec", "teardownPolicy")
	})
	stored, err := w.host.Tracker().Get(extensionset.Resource, "", "edge")
	if err != nil {
		w.Fatal(err)
	}
	set := stored.(*unstructured.Unstructured).DeepCopy()
	if set.GetDeletionTimestamp() != nil {
		return
	}
	now := metav1.NewTime(w.clock.Now())
	set.SetDeletionTimestamp(&now)
	set.SetGeneration(set.GetGeneration() + 1) // as k8s.io/apiserver does, pkg/registry/rest: BeforeDelete
	if err := w.host.Tracker().Update(extensionset.Resource, set, ""); err != nil {
		w.Fatal(err)
	}
}

func (w *world) isFree() bool {
	stored, err := w.host.Tracker().Get(extensionset.Resource, "", "edge")
	return err != nil || len(stored.(*unstructured.Unstructured).GetFinalizers()) == 0
}

func (w *world) letLeave(name string) {
	w.Helper()
	if err := w.decide(name, func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
		return plan.Resume(progress, s, w.rollout(name).Status.Troubles)
	}); err != nil {
		w.Fatal(err)
	}
}

// images returns the images of the clusters, in the order of their names.
func (w *world) images(clusters ...string) string {
	var all []string
	for _, name := range clusters {
		all = append(all, strings.TrimPrefix(w.has(name), "app:"))
	}
	return strings.Join(all, " ")
}

func TestScenarios(t *testing.T) {
	for name, scenario := range map[string]func(*world){
		"the conditions of the set are those of its rollout": func(w *world) {
			agree := func() {
				w.Helper()
				w.let(10 * time.Second)
				set, rollout := w.set().Status.Conditions, w.rollout("edge-2").Status.Conditions
				for _, one := range rollout {
					if got := meta.FindStatusCondition(set, one.Type); got == nil || got.Status != one.Status || got.Reason != one.Reason {
						w.Errorf("%s of the rollout is %s %s, and of the set %+v", one.Type, one.Status, one.Reason, got)
					}
				}
			}
			w.clusters["b"].fails = true
			w.apply("app:2", canary()...)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			agree()
			w.approve("edge-2")
			w.becomes("edge-2 Halted: a Succeeded, b Failed Failed, c Pending")
			agree()
		},
		"a failure halts the rollout, and the others keep what they have": func(w *world) {
			w.clusters["b"].fails = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b Failed Failed, c Pending")
			w.let(20 * time.Minute)
			if got := w.images("a", "b", "c"); got != "2 1 1" {
				w.Errorf("the clusters have %s", got)
			}
		},
		"a cluster that goes back by itself is rolled back, and halts the rollout": func(w *world) {
			w.clusters["b"].fails, w.clusters["b"].rollsBack = true, true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b RolledBack RolledBack, c Pending")
		},
		"a retry succeeds, and takes no digest of before": func(w *world) {
			w.clusters["b"].fails, w.clusters["b"].rollsBack = true, true
			w.upgrade(2, "app:2", canary()...)
			shownBefore := w.rollout("edge-2").Status.Troubles
			w.becomes("edge-2 Halted: a Succeeded, b RolledBack RolledBack, c Pending")
			retry := func(digest string) error {
				return w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
					return plan.Retry(progress, s, digest, []string{"b"})
				})
			}
			if err := retry(shownBefore); err == nil {
				w.Error("a decision about the troubles of before is taken")
			}
			w.clusters["b"].fails, w.clusters["b"].rollsBack = false, false
			if err := retry(w.rollout("edge-2").Status.Troubles); err != nil {
				w.Fatal(err)
			}
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
			for _, one := range w.revisions {
				if one.Annotations[olmv1alpha1.RollbackOfAnnotation] != "" && one.Annotations[olmv1alpha1.ReleaseHoldAnnotation] != one.Name {
					w.Errorf("the hold of %s is not released: %v", one.Name, one.Annotations)
				}
			}
		},
		"a retry of a cluster that succeeded after its deadline succeeds": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b Failed DeadlineExceeded, c Pending")
			w.condition(w.newest("edge.b"), olmv1alpha1.ConditionSucceeded, true)
			w.let(10 * time.Second)
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
				return plan.Retry(progress, s, w.rollout("edge-2").Status.Troubles, []string{"b"})
			}); err != nil {
				w.Fatal(err)
			}
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a changed set does not end the soak time of a canary": func(w *world) {
			w.upgrade(2, "app:2", soaking(600)...)
			w.becomes("edge-2 Soaking: a Soaking, b Pending, c Pending")
			w.upgrade(3, "app:2", soaking(300)...)
			w.let(4 * time.Minute)
			if got := w.images("a", "b", "c"); got != "2 1 1" {
				w.Errorf("%s: the clusters have %s", w.shown(), got)
			}
			w.becomes("edge-3 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a changed set does not go on without a canary that failed": func(w *world) {
			w.upgrade(2, "app:2", soaking(600)...)
			w.becomes("edge-2 Soaking: a Soaking, b Pending, c Pending")
			w.clusters["a"].sick = true
			w.becomes("edge-2 Halted: a Failed DeadlineExceeded, b Pending, c Pending")
			for i := range 12 { // more than the history keeps
				w.apply("app:2", soaking(int64(601+i))...)
				w.until("another rollout", func() bool {
					return w.shown() == fmt.Sprintf("edge-%d ReviewRequired: a Pending, b Pending, c Pending", i+3)
				})
			}
			w.approve("edge-14")
			w.becomes("edge-14 Halted: a Failed DeadlineExceeded, b Pending, c Pending")
			if got := w.images("a", "b", "c"); got != "2 1 1" {
				w.Errorf("the clusters have %s", got)
			}
		},
		"the version before reaches a cluster that failed too": func(w *world) {
			w.clusters["b"].fails = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b Failed Failed, c Pending")
			w.clusters["b"].fails = false
			w.upgrade(3, "app:1", canary()...)
			for _, group := range w.rollout("edge-3").Spec.Groups { // b has a part of the failed version
				if group.From != "app:2" || group.To != "app:1" {
					w.Errorf("clusters %v go from %s to %s", group.Clusters, group.From, group.To)
				}
			}
			w.becomes("edge-3 Completed: a Succeeded, b Succeeded")
			if image, _, _ := unstructured.NestedString(w.child("b").Object, "spec", "source", "image", "ref"); image != "app:1" {
				w.Errorf("cluster b is asked for %s", image)
			}
		},
		"the version before reaches a cluster that went back to it by itself": func(w *world) {
			w.clusters["b"].fails, w.clusters["b"].rollsBack = true, true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b RolledBack RolledBack, c Pending")
			w.upgrade(3, "app:1", canary()...)
			w.becomes("edge-3 Completed: a Succeeded, b Succeeded")
			w.let(10 * time.Second)
			if is := w.set().Status; is.Updated != is.Clusters || !meta.IsStatusConditionTrue(is.Conditions, "Ready") {
				w.Errorf("%d of %d clusters are up to date: %+v", is.Updated, is.Clusters, is.Conditions)
			}
		},
		"a write that is lost is made for a cluster that was away meanwhile": func(w *world) {
			w.upgrade(2, "app:2", canary()...)
			w.left = 1 // the progress is stored, and the child is not written
			if err := w.pass(); err == nil {
				w.Fatal("the process lives")
			}
			w.process()
			w.clusters["a"].away = true
			w.becomes("edge-2 InProgress: a Unknown, b Pending, c Pending")
			w.clusters["a"].away = false
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a cluster that left during a rollout follows when it has the labels again": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Pending")
			w.secret("c", "ring=1", "fleet=other")
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Leaving")
			w.condition(w.newest("edge.b"), olmv1alpha1.ConditionSucceeded, true)
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Leaving")
			w.secret("c", "ring=1")
			w.becomes("edge-3 ReviewRequired: c Pending")
		},
		"who asked for the content stays known when another author has no history": func(w *world) {
			limit := func(who string) {
				w.applyAs(who, "app:2", canary()...)
				w.changeSet(who, func(set *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(set.Object, int64(0), "spec", "rolloutHistoryLimit")
				})
			}
			limit("alice")
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			limit("dave")
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-3 ReviewRequired") })
			w.let(time.Minute)
			if _, err := w.own.Tracker().Get(rolloutsResource, "", "edge-2"); err != nil {
				w.Errorf("alice could approve her own change: %v", err)
			}
			if _, err := w.own.Tracker().Get(rolloutsResource, "", "edge-1"); err == nil {
				w.Error("another content has a history")
			}
		},
		"without a skipped cluster it completes": func(w *world) {
			w.clusters["b"].fails = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b Failed Failed, c Pending")
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
				return plan.Skip(progress, s, w.rollout("edge-2").Status.Troubles, []string{"b"})
			}); err != nil {
				w.Fatal(err)
			}
			w.becomes("edge-2 Completed: a Succeeded, b Skipped, c Succeeded")
			if got := w.images("a", "b", "c"); got != "2 1 2" {
				w.Errorf("the clusters have %s", got)
			}
		},
		"a cluster that is away before its turn follows": func(w *world) {
			w.clusters["c"].away = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Deferred")
			w.clusters["c"].away = false
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a cluster that goes away right before its turn follows": func(w *world) {
			w.clusters["b"].fails = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Succeeded, b Failed Failed, c Pending")
			// The last look at c is still fresh.
			w.clusters["c"].away = true
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
				return plan.Skip(progress, s, w.rollout("edge-2").Status.Troubles, []string{"b"})
			}); err != nil {
				w.Fatal(err)
			}
			if err := w.pass(); err != nil {
				w.Fatal(err)
			}
			if got := w.shown(); got != "edge-2 Halted: a Succeeded, b Skipped, c Deferred" {
				w.Error(got)
			}
			w.clusters["c"].away = false
			w.becomes("edge-2 Completed: a Succeeded, b Skipped, c Succeeded")
		},
		"a cluster that is away during its change keeps its place, and fails at the deadline": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Pending")
			w.clusters["b"].away = true
			w.becomes("edge-2 InProgress: a Succeeded, b Unknown, c Pending")
			w.let(8 * time.Minute)
			if got := w.shown(); got != "edge-2 InProgress: a Succeeded, b Unknown, c Pending" {
				w.Error(got)
			}
			w.becomes("edge-2 Halted: a Succeeded, b Failed DeadlineExceeded, c Pending")
		},
		"many that are away halt it": func(w *world) {
			w.clusters["b"].away, w.clusters["c"].away = true, true
			w.upgrade(2, "app:2", canary()...)
			w.until("it halts", func() bool { return strings.HasPrefix(w.shown(), "edge-2 Halted") })
			if message := w.rollout("edge-2").Status.Message; !strings.Contains(message, "maxUnreachable") || !strings.Contains(message, "b, c") {
				w.Error(message)
			}
		},
		"the soak time begins anew when a cluster becomes unavailable": func(w *world) {
			w.upgrade(2, "app:2", wave("canary", "0", func(one *extensionset.Wave) { one.SoakSeconds = 300 }), wave("rest", "", nil))
			w.becomes("edge-2 Soaking: a Soaking, b Pending, c Pending")
			w.let(4 * time.Minute)
			w.clusters["a"].sick = true
			w.let(time.Minute)
			w.clusters["a"].sick = false
			w.let(4 * time.Minute)
			if got := w.shown(); got != "edge-2 Soaking: a Soaking, b Pending, c Pending" {
				w.Error(got)
			}
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a soak time writes the rollout about once a minute": func(w *world) {
			w.upgrade(2, "app:2", wave("canary", "0", func(one *extensionset.Wave) { one.SoakSeconds = 3600 }), wave("rest", "", nil))
			w.becomes("edge-2 Soaking: a Soaking, b Pending, c Pending")
			w.writes = nil
			w.let(10 * time.Minute)
			if len(w.writes) < 5 || len(w.writes) > 12 {
				w.Errorf("%d writes in ten minutes: %v", len(w.writes), w.writes)
			}
		},
		"a cluster that joins waits for a rollout of its own": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Pending")
			w.join("d", "ring=1")
			w.let(time.Minute)
			if w.child("d") != nil {
				w.Error("it entered the rollout that is in progress")
			}
			w.condition(w.revisions[len(w.revisions)-1], "Succeeded", true)
			w.until("the next one is about it", func() bool { return w.shown() == "edge-3 ReviewRequired: d Pending" })
			w.approve("edge-3")
			w.becomes("edge-3 Completed: d Succeeded")
		},
		"a cluster that joins does not change beside an unhealthy one of its wave": func(w *world) {
			w.clusters["b"].sick = true
			w.join("d", "ring=1")
			w.becomes("edge-2 ReviewRequired: d Pending")
			if groups := w.rollout("edge-2").Spec.Groups; len(groups) != 1 || !slices.Equal(groups[0].Clusters, []string{"d"}) {
				w.Errorf("the groups are %+v", groups)
			}
			w.approve("edge-2")
			w.becomes("edge-2 Halted: d Pending")
			w.let(10 * time.Minute)
			if w.child("d") != nil {
				w.Error("d changes beside b")
			}
			stalled := meta.FindStatusCondition(w.set().Status.Conditions, "Stalled")
			if stalled == nil || stalled.Status != metav1.ConditionTrue || !strings.Contains(stalled.Message, "(b)") || !strings.Contains(stalled.Message, "fleet skip edge-2 CLUSTER") {
				w.Errorf("%+v", stalled)
			}
			w.clusters["b"].sick = false
			w.becomes("edge-2 Completed: d Succeeded")
			if w.rollout("edge-2").Status.Clusters[1].State != string(fleet.Present) || w.images("b", "d") != "1 1" {
				w.Errorf("%+v", w.rollout("edge-2").Status.Clusters)
			}
		},
		"users skip an unhealthy cluster of an earlier wave": func(w *world) {
			w.clusters["a"].sick = true
			w.join("d", "ring=1")
			w.becomes("edge-2 ReviewRequired: d Pending")
			w.approve("edge-2")
			w.becomes("edge-2 Halted: d Pending")
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
				return plan.Skip(progress, s, w.rollout("edge-2").Status.Troubles, []string{"a"})
			}); err != nil {
				w.Fatal(err)
			}
			w.becomes("edge-2 Completed: a Skipped, d Succeeded")
			w.let(time.Minute)
			if got := w.shown(); got != "edge-2 Completed: a Skipped, d Succeeded" {
				w.Errorf("another rollout begins: %s", got)
			}
		},
		"percentages are of the whole wave, and unreachable clusters of it hold nobody up": func(w *world) {
			half := intstr.FromString("50%")
			rest := wave("rest", "", func(one *extensionset.Wave) { one.MaxUnavailable, one.MaxUnreachable = &half, &half })
			w.apply("app:1", wave("canary", "0", nil), rest)
			w.let(10 * time.Second)
			w.clusters["b"].away = true
			w.join("d", "ring=1")
			w.join("e", "ring=1")
			w.until("it waits for an approval", func() bool { return strings.HasSuffix(w.shown(), "ReviewRequired: d Pending, e Pending") })
			name, _, _ := strings.Cut(w.shown(), " ")
			if bounds := w.rollout(name).Spec.Waves[1]; bounds.MaxUnavailable != 2 || bounds.MaxUnreachable != 2 {
				w.Errorf("of four clusters, half is %d and %d", bounds.MaxUnavailable, bounds.MaxUnreachable)
			}
			w.approve(name)
			w.becomes(name + " Completed: d Succeeded, e Succeeded")
		},
		"a cluster that has the content leaves, and its Secret can be deleted": func(w *world) {
			w.clusters["b"].sick = true
			w.join("d", "ring=1")
			w.becomes("edge-2 ReviewRequired: d Pending")
			w.approve("edge-2")
			w.becomes("edge-2 Halted: d Pending")
			w.secret("b", "ring=1", "fleet=other")
			w.becomes("edge-2 Completed: b Leaving, d Succeeded")
			if err := w.core.Tracker().Delete(secrets(), namespace, "c"); err != nil {
				w.Fatal(err)
			}
			w.until("users can delete its extension", func() bool { return w.child("c").GetAnnotations()[ext.RolloutAnnotation] == "" })
		},
		"clusters that have the content cost nothing at rest": func(w *world) {
			w.join("d", "ring=1")
			w.becomes("edge-2 ReviewRequired: d Pending")
			w.approve("edge-2")
			w.becomes("edge-2 Completed: d Succeeded")
			w.writes = nil
			looks := w.clusters["a"].looks
			w.let(10 * time.Minute)
			if len(w.writes) > 0 || w.clusters["a"].looks != looks {
				w.Errorf("%d writes, %d looks", len(w.writes), w.clusters["a"].looks-looks)
			}
		},
		"one that loses its labels leaves, and nothing is deleted": func(w *world) {
			w.secret("c", "ring=1", "fleet=other")
			w.becomes("edge-1 Completed: a Succeeded, b Succeeded, c Leaving")
			w.until("users can delete its extension", func() bool { return w.child("c").GetAnnotations()[ext.RolloutAnnotation] == "" })
			if w.child("c").GetAnnotations()[ext.SetAnnotation] != "edge" {
				w.Error("it is no child any more: it does not follow when it joins again")
			}
		},
		"many that lose their labels at once ask first": func(w *world) {
			w.secret("b", "fleet=other")
			w.secret("c", "fleet=other")
			w.until("it asks", func() bool { return strings.HasPrefix(w.shown(), "edge-1 Halted") })
			w.letLeave("edge-1")
			w.becomes("edge-1 Completed: a Succeeded, b Leaving, c Leaving")
		},
		"with the policy Delete, the child of a cluster that leaves is deleted, in a while one only": func(w *world) {
			w.removal("Delete")
			w.secret("c", "ring=1", "fleet=other")
			w.until("its child is deleted", func() bool { return w.child("c") == nil })
			if got := w.shown(); got != "edge-1 Completed: a Succeeded, b Succeeded, c Leaving" {
				w.Error(got)
			}
			w.secret("b", "ring=1", "fleet=other")
			w.until("it asks", func() bool { return strings.HasPrefix(w.shown(), "edge-1 Halted") })
			w.let(9 * time.Minute)
			if w.child("b") == nil {
				w.Error("two children of three are deleted without a question")
			}
			w.until("it is long ago that another one left", func() bool { return w.child("b") == nil })
		},
		"with the policy Delete, many that leave at once ask first": func(w *world) {
			w.removal("Delete")
			w.secret("b", "fleet=other")
			w.secret("c", "fleet=other")
			w.until("it asks", func() bool { return strings.HasPrefix(w.shown(), "edge-1 Halted") })
			w.let(20 * time.Minute)
			if w.child("b") == nil || w.child("c") == nil {
				w.Fatal("children are deleted although nobody decided")
			}
			w.letLeave("edge-1")
			w.until("they are deleted", func() bool { return w.child("b") == nil && w.child("c") == nil && w.child("a") != nil })
		},
		"with the policy Delete, many that the newest rollout is not about ask first": func(w *world) {
			w.removal("Delete")
			w.join("d", "ring=1")
			w.becomes("edge-2 ReviewRequired: d Pending")
			w.approve("edge-2")
			w.becomes("edge-2 Completed: d Succeeded")
			w.secret("b", "fleet=other")
			w.secret("c", "fleet=other")
			w.until("it asks", func() bool { return strings.HasPrefix(w.shown(), "edge-2 Halted") })
			if got := w.rollout("edge-2").Status.Leaving; !slices.Equal(got, []string{"b", "c"}) {
				w.Errorf("it asks about %v", got)
			}
			w.let(20 * time.Minute)
			if w.child("b") == nil || w.child("c") == nil {
				w.Fatal("children are deleted although nobody decided")
			}
			w.letLeave("edge-2")
			w.until("they are deleted", func() bool { return w.child("b") == nil && w.child("c") == nil })
			if w.child("a") == nil || w.child("d") == nil {
				w.Error("children are deleted of clusters that the set selects")
			}
		},
		"with the policy Delete, a missing answer, a deleted Secret and an earlier leave delete nothing": func(w *world) {
			w.secret("b", "fleet=other")
			w.until("its user can delete it", func() bool { return w.child("b").GetAnnotations()[ext.RolloutAnnotation] == "" })
			w.removal("Delete")
			w.blind = true
			w.let(time.Minute)
			w.blind = false
			if err := w.core.Tracker().Delete(secrets(), namespace, "c"); err != nil {
				w.Fatal(err)
			}
			w.let(20 * time.Minute)
			for _, name := range []string{"a", "b", "c"} {
				if w.child(name) == nil {
					w.Errorf("the child of %s is deleted", name)
				}
			}
		},
		"with the policy Delete, an author who cannot delete has nothing deleted": func(w *world) {
			w.removal("Delete")
			w.denied["edge.c"] = true
			w.secret("c", "fleet=other")
			w.until("the set says so", func() bool {
				found := w.set().Status.Exceptions
				return len(found) == 1 && found[0].Cluster == "c" && found[0].Reason == reasonDenied && strings.Contains(found[0].Message, "alice")
			})
			if w.child("c") == nil {
				w.Error("it is deleted")
			}
			delete(w.denied, "edge.c")
			w.until("it is deleted once the author can", func() bool { return w.child("c") == nil })
		},
		"with the policy Delete, a cluster waits for the next rollout when the last one has ended": func(w *world) {
			w.removal("Delete")
			w.apply("app:2", canary()...)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			w.apply("app:1", canary()...)
			w.removal("Delete")
			w.until("the rollout has ended", func() bool { return w.rollout("edge-2").Status.Ended })
			w.secret("c", "fleet=other")
			w.until("the set says so", func() bool {
				found := w.set().Status.Exceptions
				return len(found) == 1 && found[0].Cluster == "c" && found[0].Reason == reasonLeaving
			})
			if w.child("c") == nil {
				w.Error("it is deleted")
			}
			w.apply("app:3", canary()...)
			w.removal("Delete")
			w.until("it is deleted", func() bool { return w.child("c") == nil })
		},
		"with the policy Delete, a set that is deleted deletes its children, those of the last wave first": func(w *world) {
			w.secret("c", "fleet=other")
			w.until("c left", func() bool { return w.child("c").GetAnnotations()[ext.RolloutAnnotation] == "" })
			w.clusters["b"].away = true
			w.denied["edge.b"] = true
			w.tearDown("Delete")
			says := func(reason, message string) func() bool {
				return func() bool {
					found := w.set().Status.Exceptions
					return len(found) == 1 && found[0].Cluster == "b" && found[0].Reason == reason && strings.Contains(found[0].Message, message)
				}
			}
			w.until("its author cannot delete one", says(reasonDenied, "alice"))
			if w.child("b") == nil {
				w.Error("it is deleted although the author cannot do that")
			}
			w.until("an unreachable cluster holds up no wave", func() bool { return w.child("a") == nil && w.has("a") == "" })
			delete(w.denied, "edge.b")
			w.until("the unreachable one is named", says(reasonUnreachable, "Orphan"))
			w.let(time.Minute)
			if is := w.set().Status; w.child("b") != nil || w.has("b") == "" || !meta.IsStatusConditionTrue(is.Conditions, "Stalled") || is.Phase != "Deleting" {
				w.Errorf("the set waits for b: %+v", is)
			}
			w.clusters["b"].away = false
			w.until("the set is gone", w.isFree)
			if child := w.child("c"); child == nil || child.GetAnnotations()[ext.SetAnnotation] != "" {
				w.Errorf("the child of a cluster that left before: %v", child)
			}
		},
		"a wave is deleted once the later ones are gone": func(w *world) {
			for _, one := range w.clusters {
				one.hangs = true // it has content until the test clears this field
			}
			w.tearDown("Delete")
			w.until("the last wave is deleted", func() bool { return w.child("b") == nil && w.child("c") == nil })
			w.let(time.Minute)
			if w.child("a") == nil {
				w.Error("the first wave is deleted while the last one has content")
			}
			w.clusters["b"].hangs, w.clusters["c"].hangs = false, false
			w.until("the first wave is deleted", func() bool { return w.child("a") == nil })
			if w.isFree() {
				w.Error("the set is gone, and a has content")
			}
			w.clusters["a"].hangs = false
			w.until("the set is gone", w.isFree)
		},
		"a set that is being deleted lets its children stay, once it says so": func(w *world) {
			w.clusters["b"].hangs, w.clusters["c"].hangs = true, true
			w.tearDown("Delete")
			w.until("the last wave is deleted", func() bool { return w.child("b") == nil && w.child("c") == nil })
			w.tearDown("Retain")
			w.until("the set is gone", w.isFree)
			if child := w.child("a"); child == nil || child.GetAnnotations()[ext.SetAnnotation] != "" {
				w.Errorf("the child of a is %v", child)
			}
		},
		"no answer about Secrets lets a cluster leave": func(w *world) {
			w.blind = true
			w.let(time.Minute)
			w.blind = false
			w.becomes("edge-1 Completed: a Succeeded, b Succeeded, c Succeeded")
			for _, name := range []string{"a", "b", "c"} {
				if w.child(name).GetAnnotations()[ext.RolloutAnnotation] == "" {
					w.Errorf("cluster %s left", name)
				}
			}
		},
		"a deleted Secret is a cluster that is away, until the rollout is over": func(w *world) {
			w.clusters["c"].away = true // it cannot be reached without the Secret
			w.apply("app:2", canary()...)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			if err := w.core.Tracker().Delete(secrets(), namespace, "c"); err != nil {
				w.Fatal(err)
			}
			w.approve("edge-2")
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Deferred")
			if w.child("c").GetAnnotations()[ext.RolloutAnnotation] == "" {
				w.Error("its extension can be deleted while the rollout waits for it")
			}
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, s fleet.Situation) (fleet.Progress, error) {
				return plan.Skip(progress, s, w.rollout("edge-2").Status.Troubles, []string{"c"})
			}); err != nil {
				w.Fatal(err)
			}
			w.until("users can delete its extension", func() bool { return w.child("c").GetAnnotations()[ext.RolloutAnnotation] == "" })
		},
		"a Secret that leads to another cluster stops that cluster only": func(w *world) {
			w.upgrade(2, "app:2", wave("canary", "0", nil), wave("rest", "", func(one *extensionset.Wave) { one.MaxFailures = 1 }))
			w.clusters["b"].uid = "uid-of-another"
			w.secret("b", "ring=1")
			w.becomes("edge-2 Completed: a Succeeded, b Failed OtherCluster, c Succeeded")
			if got := w.images("b"); got != "1" {
				w.Errorf("the other cluster got %s", got)
			}
		},
		"a renewed token is no failure": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Pending")
			w.secret("b", "ring=1")
			w.let(time.Minute)
			w.condition(w.revisions[len(w.revisions)-1], "Succeeded", true)
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"content that changes before the approval makes another rollout": func(w *world) {
			w.apply("app:2", canary()...)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			shown := w.rollout("edge-2").Status.Digest
			w.apply("app:3", canary()...)
			w.until("another one waits", func() bool { return strings.HasPrefix(w.shown(), "edge-3 ReviewRequired") })
			if err := w.decide("edge-2", func(plan *fleet.Plan, progress fleet.Progress, _ fleet.Situation) (fleet.Progress, error) {
				return plan.Approve(progress, shown)
			}); err == nil {
				w.Error("the rollout of before is approved")
			}
			if w.rollout("edge-3").Status.Digest == shown {
				w.Error("both have one digest")
			}
		},
		"content that changes after the approval reaches no cluster": func(w *world) {
			w.upgrade(2, "app:2", canary()...)
			w.clusters["b"].changed = "moved"
			w.becomes("edge-2 Halted: a Succeeded, b Failed ChangedSinceReview, c Pending")
			if got := w.images("b"); got != "1" {
				w.Errorf("the cluster got %s", got)
			}
		},
		"clusters of another content are a group of their own": func(w *world) {
			w.clusters["c"].more = "for its version of Kubernetes"
			w.apply("app:2", canary()...)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			groups := w.rollout("edge-2").Spec.Groups
			if len(groups) != 2 || !slices.Equal(groups[0].Clusters, []string{"a", "b"}) || !slices.Equal(groups[1].Clusters, []string{"c"}) {
				w.Errorf("the groups are %+v", groups)
			}
		},
		"an override makes a group, and approving one digest does not approve the other": func(w *world) {
			override := func(replicas int64) {
				w.apply("app:2", canary()...)
				w.changeSet("alice", func(set *unstructured.Unstructured) {
					set.Object["spec"].(map[string]any)["overrides"] = []any{map[string]any{"clusterSelector": map[string]any{"matchLabels": map[string]any{"site": "small"}}, "config": map[string]any{"replicas": replicas}}}
				})
			}
			w.secret("c", "ring=1", "site=small")
			override(1)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			groups, shown := w.rollout("edge-2").Spec.Groups, w.rollout("edge-2").Status.Digest
			if len(groups) != 2 || !slices.Equal(groups[0].Clusters, []string{"a", "b"}) || !slices.Equal(groups[1].Clusters, []string{"c"}) {
				w.Fatalf("the groups are %+v", groups)
			}
			if strings.Contains(string(groups[0].Extension.Raw), "replicas") || !strings.Contains(string(groups[1].Extension.Raw), `"inline":{"replicas":1}`) {
				w.Errorf("the extensions are %s and %s", groups[0].Extension.Raw, groups[1].Extension.Raw)
			}
			override(2)
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-3 ReviewRequired") })
			if err := w.decide("edge-3", func(plan *fleet.Plan, progress fleet.Progress, _ fleet.Situation) (fleet.Progress, error) {
				return plan.Approve(progress, shown)
			}); err == nil {
				w.Error("the digest of another override approves it")
			}
			w.approve("edge-3")
			w.becomes("edge-3 Completed: a Succeeded, b Succeeded, c Succeeded")
			if got := w.has("a") + w.has("c"); got != "app:2app:2 map[replicas:2]" {
				w.Errorf("the clusters have %s", got)
			}
			// A label selects another override. The set does not change.
			w.secret("b", "ring=1", "site=small")
			w.becomes("edge-4 ReviewRequired: b Pending")
		},
		"a cluster that an override names, and the set does not select, is named": func(w *world) {
			w.changeSet("alice", func(set *unstructured.Unstructured) {
				set.Object["spec"].(map[string]any)["overrides"] = []any{map[string]any{"clusterNames": []any{"d"}, "config": map[string]any{"replicas": int64(1)}}}
			})
			w.let(10 * time.Second)
			is := w.set().Status
			if len(is.Exceptions) != 1 || is.Exceptions[0].Cluster != "d" || is.Exceptions[0].Reason != reasonNotSelected || !meta.IsStatusConditionTrue(is.Conditions, "Ready") {
				w.Errorf("the status is %+v", is)
			}
		},
		"a cluster that the author cannot use is looked at by nobody": func(w *world) {
			w.denied["mine"] = true
			one := w.join("mine", "ring=0")
			w.let(time.Minute)
			if one.looks > 0 || w.child("mine") != nil {
				w.Errorf("%d looks", one.looks)
			}
			if found := w.set().Status.Exceptions; len(found) != 1 || found[0].Reason != reasonDenied {
				w.Errorf("the exceptions are %+v", found)
			}
		},
		"two Secrets that lead to one cluster count once": func(w *world) {
			w.join("z", "ring=1").uid = w.clusters["a"].uid
			w.let(time.Minute)
			if found := w.set().Status.Exceptions; len(found) != 1 || found[0].Cluster != "z" || found[0].Reason != reasonSame {
				w.Errorf("the exceptions are %+v", found)
			}
		},
		"a cluster in no wave is named": func(w *world) {
			w.join("d", "ring=9")
			w.apply("app:2", wave("canary", "0", nil), wave("rest", "1", nil), wave("empty", "7", nil))
			w.until("it waits for an approval", func() bool { return strings.HasPrefix(w.shown(), "edge-2 ReviewRequired") })
			if found := w.set().Status.Exceptions; len(found) != 1 || found[0].Cluster != "d" || found[0].Reason != reasonNoWave {
				w.Errorf("the exceptions are %+v", found)
			}
			w.approve("edge-2")
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
		},
		"a set that has no clusters any more takes no place of those of other sets": func(w *world) {
			w.clusters["b"].hangs = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 InProgress: a Succeeded, b Updating, c Pending")
			if room := w.running.room(); room != maxChanging-1 {
				w.Fatalf("there is room for %d", room)
			}
			w.changeSet("alice", func(set *unstructured.Unstructured) {
				_ = unstructured.SetNestedStringMap(set.Object, map[string]string{"fleet": "none"}, "spec", "clusterSelector", "matchLabels")
			})
			w.until("the rollout has ended", func() bool { return w.rollout("edge-2").Status.Ended })
			w.let(10 * time.Second)
			if room := w.running.room(); room != maxChanging {
				w.Errorf("there is room for %d", room)
			}
		},
		"a freeze, and a closed window, let nothing begin": func(w *world) {
			w.frozen = true
			w.upgrade(2, "app:2", canary()...)
			w.becomes("edge-2 Halted: a Pending, b Pending, c Pending")
			w.frozen, w.closed = false, true
			w.becomes("edge-2 Scheduled: a Pending, b Pending, c Pending")
			w.closed = false
			w.becomes("edge-2 Completed: a Succeeded, b Succeeded, c Succeeded")
			w.frozen = true
			w.let(time.Minute)
			if got := w.set().Status.Phase; got != string(fleet.Completed) {
				w.Errorf("a freeze has a completed rollout be %s", got)
			}
		},
		"a wave begins in its window": func(w *world) { // at 8:00 and some minutes
			late := func(hour string) []extensionset.Wave {
				return []extensionset.Wave{wave("canary", "0", nil), wave("rest", "", func(one *extensionset.Wave) {
					one.Window = &extensionset.Window{Schedule: "0 " + hour + " * * *", TimeZone: "UTC", Duration: metav1.Duration{Duration: time.Hour}}
				})}
			}
			w.upgrade(2, "app:2", late("10")...)
			shown := w.rollout("edge-2").Spec.Waves[1].Window
			w.becomes("edge-2 Scheduled: a Succeeded, b Pending, c Pending")
			if got := w.set().Status.Conditions; shown == nil || shown.Schedule != "0 10 * * *" || !strings.Contains(meta.FindStatusCondition(got, "Progressing").Message, "its window is closed, and opens at 2026-11-29T10:00:00Z") {
				w.Errorf("the window is %+v: %+v", shown, got)
			}
			w.upgrade(3, "app:2", late("8")...)
			w.becomes("edge-3 Completed: b Succeeded, c Succeeded")
		},
		"another author has clusters looked at anew, and a refusal is not for ever": func(w *world) {
			before := w.previews
			w.applyAs("dave", "app:1", canary()...)
			w.let(10 * time.Second)
			if w.previews == before {
				w.Error("the previews of alice count for dave")
			}
		},
		"children outlive their set, also those of rollouts that are pruned": func(w *world) {
			w.secret("c", "fleet=other")
			w.becomes("edge-1 Completed: a Succeeded, b Succeeded, c Leaving")
			for i := range 14 {
				w.upgrade(i+2, fmt.Sprintf("app:%d", i+2), canary()...)
				w.until("it completes", func() bool { return strings.HasPrefix(w.shown(), fmt.Sprintf("edge-%d Completed", i+2)) })
			}
			if _, err := w.own.Tracker().Get(rolloutsResource, "", "edge-1"); err == nil {
				w.Fatal("the first rollout is kept: the scenario shows nothing")
			}
			w.tearDown("Retain")
			w.until("the set is free", w.isFree)
			for _, name := range []string{"a", "b", "c"} {
				if w.child(name) == nil || w.child(name).GetAnnotations()[ext.SetAnnotation] != "" {
					w.Errorf("the child of %s is %v", name, w.child(name))
				}
			}
			if got := w.images("a", "b", "c"); got != "15 15 1" {
				w.Errorf("the clusters have %s", got)
			}
			if got := w.shown(); got != "no rollout" {
				w.Errorf("a rollout outlives its set: %s", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { scenario(three(t)) })
	}
}

// TestWaves: three waves of four clusters, of which two may change together. The world checks the
// rule at each write.
func TestWaves(t *testing.T) {
	w := newWorld(t)
	var waves []extensionset.Wave
	for ring := range 3 {
		for i := range 4 {
			w.join(fmt.Sprintf("c%d-%d", ring, i), fmt.Sprintf("ring=%d", ring))
		}
		waves = append(waves, wave(fmt.Sprintf("w%d", ring), fmt.Sprint(ring), func(one *extensionset.Wave) {
			two := intstr.FromInt32(2)
			one.MaxUnavailable, one.SoakSeconds = &two, 10
		}))
	}
	w.apply("app:1", waves...)
	w.until("it waits", func() bool { return strings.HasPrefix(w.shown(), "edge-1 ReviewRequired") })
	if len(w.marks) > 0 {
		t.Errorf("children before an approval: %v", w.marks)
	}
	w.approve("edge-1")
	w.until("it completes", func() bool { return strings.HasPrefix(w.shown(), "edge-1 Completed") })
	if len(w.marks) != 12 {
		t.Errorf("%d children are written: %v", len(w.marks), w.marks)
	}
}

// TestNewest: only the newest rollout of a set counts, and none if that rollout has ended.
func TestNewest(t *testing.T) {
	of := func(set, name string, ended bool) *olmv1alpha1.ClusterExtensionRollout {
		one := &olmv1alpha1.ClusterExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: name}}
		one.Spec.Set.Name, one.Status.Ended = set, ended
		return one
	}
	got := newestOf([]*olmv1alpha1.ClusterExtensionRollout{of("edge", "edge-10", false), of("edge", "edge-9", false), of("old", "old-1", false), of("old", "old-2", true)})
	if len(got) != 1 || got[0].Name != "edge-10" {
		t.Errorf("%v", got)
	}
}

// TestRefused: the status of a set shows that the host refuses its writes. The set continues when
// the host accepts them again.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.join("c0", "ring=0")
	w.apply("app:1", wave("all", "", nil))
	w.becomes("edge-1 ReviewRequired: c0 Pending")
	w.approve("edge-1")
	w.refuses = true
	var err error
	for range 5 {
		err = w.pass()
		w.clock.Step(lookEvery)
	}
	stalled := meta.FindStatusCondition(w.set().Status.Conditions, "Stalled")
	if err == nil || stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != "WriteRefused" || !strings.Contains(stalled.Message, "only Penstock writes this annotation") {
		t.Errorf("error %v, Stalled %+v", err, stalled)
	}
	w.refuses = false
	w.becomes("edge-1 Completed: c0 Succeeded")
	w.until("not stalled", func() bool { return meta.IsStatusConditionFalse(w.set().Status.Conditions, "Stalled") })
}

// TestUnknown: after a restart a set waits for the ClusterExtensions, which no watch of sets
// reports.
func TestUnknown(t *testing.T) {
	w := newWorld(t)
	w.join("c0", "ring=0")
	w.apply("app:1", wave("all", "", nil))
	w.becomes("edge-1 ReviewRequired: c0 Pending")
	w.approve("edge-1")
	w.process()
	w.unknown = true
	if err := w.pass(); !errors.Is(err, errUnknown) {
		t.Fatal(err)
	}
	w.clock.Step(lookEvery)
	next := make(chan string, 1)
	go func() {
		name, _ := w.running.queue.Get()
		next <- name
	}()
	select {
	case <-next:
	case <-time.After(time.Minute):
		t.Fatal("no pass follows")
	}
	w.unknown = false
	w.becomes("edge-1 Completed: c0 Succeeded")
}

// TestKill: the process dies after each of its writes, in a rollout of five clusters in two waves,
// and a new process continues. Every cluster begins exactly once, and the budgets hold.
func TestKill(t *testing.T) {
	run := func(t *testing.T, left int) (writes int) {
		w := newWorld(t)
		for i := range 5 {
			w.join(fmt.Sprintf("c%d", i), fmt.Sprintf("ring=%d", i/2))
		}
		two := intstr.FromInt32(2)
		w.apply("app:1", wave("canary", "0", nil), wave("rest", "", func(one *extensionset.Wave) { one.MaxUnavailable, one.SoakSeconds = &two, 10 }))
		w.left = left
		approved, died := false, false
		for range 400 {
			if err := w.pass(); err != nil {
				if w.left != 0 || died {
					t.Fatal(err)
				}
				died = true
				w.process()
				continue
			}
			if !approved && strings.HasPrefix(w.shown(), "edge-1 ReviewRequired") && w.rollout("edge-1").Status.Digest != "" {
				w.approve("edge-1")
				approved = true
			}
			if strings.HasPrefix(w.shown(), "edge-1 Completed") && w.set().Status.Updated == 5 {
				break
			}
			w.clock.Step(lookEvery)
		}
		if got, want := w.shown(), "edge-1 Completed: c0 Succeeded, c1 Succeeded, c2 Succeeded, c3 Succeeded, c4 Succeeded"; got != want {
			t.Errorf("killed after %d writes: %s", left, got)
		}
		if len(w.marks) != 5 {
			t.Errorf("killed after %d writes: %d children are written: %v", left, len(w.marks), w.marks)
		}
		if left >= 0 && !died {
			t.Errorf("the process made no write after the first %d", left)
		}
		return len(w.writes)
	}
	all := run(t, -1)
	if all < 15 {
		t.Fatalf("a rollout makes %d writes only", all)
	}
	for left := range all {
		run(t, left)
	}
}

// TestThousand: users review a thousand clusters together, and the record of their rollout is
// small.
func TestThousand(t *testing.T) {
	w := newWorld(t)
	for i := range 1000 {
		w.join(fmt.Sprintf("cluster-%04d", i), fmt.Sprintf("ring=%d", i%10))
	}
	w.apply("app:1", canary()...)
	w.until("it waits", func() bool { return strings.HasPrefix(w.shown(), "edge-1 ReviewRequired") })
	r := w.rollout("edge-1")
	content, err := json.Marshal(r)
	if err != nil || len(content) > 768<<10 {
		t.Errorf("the record has %d bytes: %v", len(content), err)
	}
	w.writes = nil
	looks := w.clusters["cluster-0000"].looks
	w.let(time.Minute)
	if len(w.writes) > 0 || w.clusters["cluster-0000"].looks != looks {
		t.Errorf("at rest: %d writes, %d looks", len(w.writes), w.clusters["cluster-0000"].looks-looks)
	}
	t.Logf("the record of %d clusters has %d bytes", len(r.Spec.Clusters), len(content))

	w.join("one-more", "ring=0")
	w.until("the set says so", func() bool {
		stalled := meta.FindStatusCondition(w.set().Status.Conditions, "Stalled")
		return stalled != nil && stalled.Reason == reasonTooManyClusters
	})
	if rollout := w.rollout("edge-1"); rollout.Status.Ended || len(rollout.Spec.Clusters) != 1000 {
		t.Errorf("a cluster above the bound changed the rollout: %s of %d clusters", rollout.Status.Phase, len(rollout.Spec.Clusters))
	}
}
