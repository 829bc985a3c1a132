package report

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pass is the result of one reconcile of a custom resource.
type Pass struct {
	// Kind and Name of the custom resource, for messages.
	Kind, Name string
	// Generation is metadata.generation at the beginning of the pass. Later changes do not count as
	// observed.
	Generation int64
	// Paused is true if the custom resource is paused.
	Paused bool
	// Irreconcilable is the reason why no revision can be created; empty otherwise.
	Irreconcilable string
	// Waiting is the reason why the next revision waits; empty otherwise.
	Waiting string
	// Rollout is the rollout of the newest revision; nil without a revision.
	Rollout *Rollout
}

// Rollout is the rollout of a revision.
type Rollout struct {
	// Revision is the revision's name.
	Revision string
	// Version is the chart's version. Notes is the text of its NOTES.txt.
	Version, Notes string
	// First is true if nothing was installed before.
	First bool
	// Succeeded is true if all objects have been ready once.
	Succeeded bool
	// Failure is the reason why the rollout is stuck; empty otherwise.
	Failure string
}

// Reconciled returns the status fields of the revision controller after a pass. While a rollout
// runs, waits or is paused, observedGeneration and reconciledVersion do not change. A generation is
// observed when its rollout has succeeded or failed, or when no revision can be created.
func Reconciled(p Pass, stored Status, now metav1.Time) Status {
	out := Status{ObservedGeneration: stored.ObservedGeneration, ReconciledVersion: stored.ReconciledVersion}
	deployed := p.deployed(stored)
	failed := condition(ReleaseFailed, metav1.ConditionFalse, ReasonNone, "")
	broken := condition(Irreconcilable, metav1.ConditionFalse, ReasonNone, "")
	paused := condition(Paused, metav1.ConditionFalse, ReasonNone, "")
	switch r := p.Rollout; {
	case p.Paused:
		paused = condition(Paused, metav1.ConditionTrue, ReasonPaused, "the installed objects stay as they are until the annotation is removed")
		failed, broken = kept(stored, failed), kept(stored, broken)
	case p.Irreconcilable != "":
		out.ObservedGeneration = p.Generation
		broken = condition(Irreconcilable, metav1.ConditionTrue, ReasonReconcileError, p.Irreconcilable)
	case p.Waiting != "" || r == nil:
	case r.Succeeded:
		out.ObservedGeneration, out.ReconciledVersion = p.Generation, r.Version
	case r.Failure != "":
		out.ObservedGeneration = p.Generation
		failed = condition(ReleaseFailed, metav1.ConditionTrue, r.reason(ReasonInstallError, ReasonUpgradeError), r.Failure)
	}
	out.Conditions = stamped(stored, now, deployed, failed, broken, paused)
	return out
}

func kept(stored Status, otherwise metav1.Condition) metav1.Condition {
	if before := stored.find(otherwise.Type); before != nil {
		return *before
	}
	return otherwise
}

func (r *Rollout) reason(install, upgrade string) string {
	if r.First {
		return install
	}
	return upgrade
}

// deployed returns the condition whose message kubectl shows as a column: the state of the custom
// resource in one line.
func (p Pass) deployed(stored Status) metav1.Condition {
	// Deployed stays True while the next revision is created.
	there := metav1.ConditionFalse
	if stored.Is(Deployed, metav1.ConditionTrue) || stored.ReconciledVersion != "" {
		there = metav1.ConditionTrue
	}
	failed := ReasonInstallError
	if there == metav1.ConditionTrue {
		failed = ReasonUpgradeError
	}
	switch r := p.Rollout; {
	case p.Paused:
		return kept(stored, condition(Deployed, metav1.ConditionUnknown, ReasonReconciling, "paused before anything was installed"))
	case p.Irreconcilable != "":
		return condition(Deployed, there, failed, p.Irreconcilable)
	case p.Waiting != "":
		return condition(Deployed, there, ReasonReconciling, p.Waiting)
	case r == nil:
		return condition(Deployed, metav1.ConditionUnknown, ReasonReconciling, "nothing is installed yet")
	case r.Succeeded:
		return condition(Deployed, metav1.ConditionTrue, r.reason(ReasonInstallSuccessful, ReasonUpgradeSuccessful),
			cmp.Or(r.Notes, fmt.Sprintf("%s %s is installed.", p.Kind, p.Name)))
	case r.Failure != "":
		return condition(Deployed, there, failed, r.Failure)
	case r.First:
		return condition(Deployed, metav1.ConditionUnknown, ReasonReconciling, fmt.Sprintf("being installed: %s is rolled out", r.Revision))
	default:
		return condition(Deployed, metav1.ConditionUnknown, ReasonReconciling, fmt.Sprintf("being upgraded: %s is rolled out", r.Revision))
	}
}
