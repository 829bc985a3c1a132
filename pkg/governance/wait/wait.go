// Package wait decides from observed state only whether a target is healthy. While an observation
// is missing, it waits.
package wait

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// State is the state of a wait.
type State string

const (
	// Done means that the target is healthy.
	Done State = "Done"
	// Waiting means that the target is in progress.
	Waiting State = "Waiting"
	// Paused means that a user has paused the target. That time does not count.
	Paused State = "Paused"
	// Failed means that the target cannot become healthy.
	Failed State = "Failed"
)

// degradedGrace is the time after which a degraded node or operator counts as failed. Both are
// degraded for a while when they retry.
const degradedGrace = 10 * time.Minute

// Times has the start of the deadlines.
type Times struct {
	Now time.Time
	// Written is the time of the target's write. Without a write, it is the time at which the item
	// began. Older conditions of the target do not count.
	Written time.Time
}

// left returns the remaining time until a condition counts as a failure. since is the time at which
// it became true.
func (t Times) left(since time.Time) time.Duration {
	if since.Before(t.Written) {
		since = t.Written
	}
	return degradedGrace - t.Now.Sub(since)
}

// graced waits for the end of a condition, and fails if the condition lasts too long. state and
// details are the message during the wait, failed is the message of the failure.
func (t Times) graced(since time.Time, state, details, failed string) Verdict {
	if left := t.left(since); left > 0 {
		return Verdict{State: Waiting, Again: left, Message: fmt.Sprintf("%s, which fails the item in %s%s", state, left.Round(time.Second), details)}
	}
	return Verdict{State: Failed, Message: failed}
}

// Verdict is a state with a message about the wait.
type Verdict struct {
	State   State
	Message string
	// Again is the time after which to judge again without an event; 0 means never.
	Again time.Duration
}

// For judges a target that has been applied.
func For(target *unstructured.Unstructured, live *unstructured.Unstructured, facts profile.Facts, at Times) Verdict {
	switch target.GroupVersionKind().GroupKind() {
	case profile.MachineConfigKind():
		return pools(target, facts, at, true)
	case profile.KubeletConfigKind():
		return kubeletConfig(target, live, facts, at)
	case schema.GroupKind{Group: "operator.openshift.io", Kind: "KubeDescheduler"}:
		return descheduler(live, at)
	case healthChecks():
		return healthCheck(live, at)
	default:
		return Verdict{State: Done}
	}
}

func healthChecks() schema.GroupKind {
	return schema.GroupKind{Group: "remediation.medik8s.io", Kind: "NodeHealthCheck"}
}

// Gone judges a target that has been deleted.
func Gone(target *unstructured.Unstructured, facts profile.Facts, at Times) Verdict {
	if target.GroupVersionKind().GroupKind() == profile.KubeletConfigKind() {
		return kubeletConfigGone(target, facts, at)
	}
	if target.GroupVersionKind().GroupKind() != profile.MachineConfigKind() {
		return Verdict{State: Done, Message: "deleted"}
	}
	without := target.DeepCopy()
	unstructured.RemoveNestedField(without.Object, "spec")
	return pools(without, facts, at, false)
}

// pools waits for every pool that includes the MachineConfig. The worst verdict counts.
func pools(target *unstructured.Unstructured, facts profile.Facts, at Times, there bool) Verdict {
	all := profile.PoolsOf(facts, target.GetLabels())
	if len(all) == 0 {
		return Verdict{State: Done, Message: "no MachineConfigPool selects it: nothing changes on any node"}
	}
	return worst(all, func(p *unstructured.Unstructured) Verdict { return pool(target, p, facts, at, there) })
}

func worst(all []*unstructured.Unstructured, judge func(*unstructured.Unstructured) Verdict) Verdict {
	verdict := Verdict{State: Done}
	var waiting, done []string
	order := []State{Done, Waiting, Paused, Failed}
	for _, p := range all {
		one := judge(p)
		if one.State == Done {
			done = append(done, one.Message)
		} else {
			waiting = append(waiting, one.Message)
		}
		if one.Again > 0 && (verdict.Again == 0 || one.Again < verdict.Again) {
			verdict.Again = one.Again
		}
		// A pool that waits comes before a paused pool, because its waiting time counts.
		if slices.Index(order, one.State) > slices.Index(order, verdict.State) && !(one.State == Paused && verdict.State == Waiting) ||
			one.State == Waiting && verdict.State == Paused {
			verdict.State = one.State
		}
	}
	verdict.Message = strings.Join(append(waiting, done...), "; ")
	return verdict
}

// pool judges one pool by content, and not by names alone: right after a change the pool still
// reports the update of its previous configuration.
func pool(target, pool *unstructured.Unstructured, facts profile.Facts, at Times, there bool) Verdict {
	name := pool.GetName()
	if verdict := unrendered(pool, at); verdict.State != Done {
		return verdict
	}
	switch {
	case there && !rendered(target, pool, facts):
		if overrides := profile.Overrides(facts, pool, target); len(overrides) > 0 {
			return overridden(pool, target.GetName(), overrides)
		}
		return Verdict{State: Waiting, Message: fmt.Sprintf("Waiting for %s to be rendered into MachineConfigPool %q", target.GetName(), name)}
	case !there && sourceOf(target, pool):
		return Verdict{State: Waiting, Message: fmt.Sprintf("Waiting for MachineConfigPool %q to be rendered without %s", name, target.GetName())}
	}
	return rolled(pool, facts, at)
}

// overridden fails a target that other MachineConfigs override. It takes effect only after they
// change.
func overridden(pool *unstructured.Unstructured, name string, overrides profile.OverrideList) Verdict {
	return Verdict{State: Failed, Message: fmt.Sprintf("MachineConfigPool %q does not use all of %s: %s; MachineConfigs are merged in the order of their names, and the last one wins: remove that from it", pool.GetName(), name, overrides)}
}

// unrendered fails a pool that the operator cannot render since the target was written. If the pool
// could not be rendered before, the target may repair that, so the pool gets more time.
func unrendered(pool *unstructured.Unstructured, at Times) Verdict {
	message, since, degraded := condition(pool, "RenderDegraded")
	failed := fmt.Sprintf("MachineConfigPool %q cannot be rendered: %s", pool.GetName(), message)
	switch {
	case !degraded:
		return Verdict{State: Done}
	case since.Before(at.Written):
		return at.graced(since, fmt.Sprintf("MachineConfigPool %q could not be rendered before", pool.GetName()), ": "+message, failed)
	default:
		return Verdict{State: Failed, Message: failed}
	}
}

// rolled judges whether all nodes of a pool have the configuration in its spec.
func rolled(pool *unstructured.Unstructured, facts profile.Facts, at Times) Verdict {
	name := pool.GetName()
	total, updated, ready := profile.Count(pool, "machineCount"), profile.Count(pool, "updatedMachineCount"), profile.Count(pool, "readyMachineCount")
	unavailable := profile.Count(pool, "unavailableMachineCount")
	if settled(pool) && updated == total && ready == total && unavailable == 0 {
		if total == 0 {
			return Verdict{State: Done, Message: fmt.Sprintf("MachineConfigPool %q has no nodes", name)}
		}
		return Verdict{State: Done, Message: fmt.Sprintf("MachineConfigPool %q is stable and ready (%d nodes)", name, total)}
	}
	progress := fmt.Sprintf("(updated %d/%d nodes, ready %d/%d nodes)", updated, total, ready, total)
	if paused, _, _ := unstructured.NestedBool(pool.Object, "spec", "paused"); paused {
		return Verdict{State: Paused, Message: fmt.Sprintf("MachineConfigPool %q is paused %s: set spec.paused to false to continue", name, progress)}
	}
	if message, since, degraded := condition(pool, "NodeDegraded"); degraded {
		if config := profile.Rendered(facts, pool, "spec"); config != nil && config.GetCreationTimestamp().After(at.Written) {
			at.Written = config.GetCreationTimestamp().Time // no node could have it earlier
		}
		return at.graced(since, fmt.Sprintf("MachineConfigPool %q has a degraded node", name), " "+progress+": "+message,
			fmt.Sprintf("MachineConfigPool %q has been degraded for more than %s: %s", name, degradedGrace, message))
	}
	waiting := fmt.Sprintf("Waiting for MachineConfigPool %q to stabilize %s", name, progress)
	if missing := max(unavailable, updated-ready); missing > 0 {
		waiting += fmt.Sprintf("; unavailable nodes: %d, each of them restarts, is cordoned or is not ready; a node that stays cordoned or not ready holds the pool up: kubectl get nodes", missing)
	}
	return Verdict{State: Waiting, Message: waiting}
}

// settled reports whether a pool's nodes have the configuration in its spec, and its status covers
// the last change of spec.
func settled(pool *unstructured.Unstructured) bool {
	want, _, _ := unstructured.NestedString(pool.Object, "spec", "configuration", "name")
	have, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
	_, _, updated := condition(pool, "Updated")
	return want != "" && want == have && updated && profile.Count(pool, "observedGeneration") >= pool.GetGeneration()
}

// rendered reports whether the configuration in a pool's spec has the content of the target. The
// name among the sources is not enough, because it was there before an update of the target.
func rendered(target, pool *unstructured.Unstructured, facts profile.Facts) bool {
	if !sourceOf(target, pool) {
		return false
	}
	config := profile.Rendered(facts, pool, "spec")
	if config == nil {
		return false
	}
	return profile.HasArguments(config, target) && profile.NodeConfigOf(config).Has(profile.NodeConfigOf(target))
}

// sourceOf reports whether a pool's configuration is rendered from a target.
func sourceOf(target, pool *unstructured.Unstructured) bool {
	sources, _, _ := unstructured.NestedSlice(pool.Object, "spec", "configuration", "source")
	return slices.ContainsFunc(sources, func(item any) bool {
		source, _ := item.(map[string]any)
		return source["name"] == target.GetName()
	})
}

// descheduler waits until the operator is not degraded.
func descheduler(live *unstructured.Unstructured, at Times) Verdict {
	if live == nil {
		return Verdict{State: Waiting, Message: "waiting to see its state"}
	}
	if message, since, degraded := complaint(live); degraded {
		return at.graced(since, "the descheduler's operator is degraded", ": "+message, "the descheduler's operator is degraded: "+message)
	}
	return Verdict{State: Done, Message: "applied"}
}

// healthCheck waits until the operator enables the health check. The operator disables it while a
// MachineHealthCheck exists, or if its template does not exist.
func healthCheck(live *unstructured.Unstructured, at Times) Verdict {
	if live == nil {
		return Verdict{State: Waiting, Message: "waiting to see its state"}
	}
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	reason, _, _ := unstructured.NestedString(live.Object, "status", "reason")
	nodes, _, _ := unstructured.NestedInt64(live.Object, "status", "observedNodes")
	healthy, _, _ := unstructured.NestedInt64(live.Object, "status", "healthyNodes")
	switch phase {
	case "Enabled", "Remediating":
		return Verdict{State: Done, Message: fmt.Sprintf("it checks %d nodes, %d of them healthy", nodes, healthy)}
	case "Paused":
		return Verdict{State: Paused, Message: "it is paused: remove spec.pauseRequests from it to continue"}
	case "Disabled":
		message, since, _ := condition(live, "Disabled")
		if message == "" {
			message = reason
		}
		return at.graced(since, "the Node Health Check Operator has disabled it", ": "+message, "the Node Health Check Operator has disabled it: "+message)
	default:
		return Verdict{State: Waiting, Message: "waiting for the Node Health Check Operator to take it up"}
	}
}

// condition returns the last condition of a type. The lists of these operators are atomic, and can
// have several of one type.
func condition(object *unstructured.Unstructured, kind string) (message string, since time.Time, holds bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		one, _ := item.(map[string]any)
		if one["type"] != kind {
			continue
		}
		message, _ = one["message"].(string)
		holds = one["status"] == "True"
		text, _ := one["lastTransitionTime"].(string)
		since, _ = time.Parse(time.RFC3339, text)
	}
	return message, since, holds
}
