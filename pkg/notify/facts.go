package notify

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/text"
)

// Type is the subject of a notification.
type Type string

// Types, the most urgent first.
const (
	// Failed: a rollout missed its deadline, an executed plan had errors, or no revision can be
	// created for an extension.
	Failed Type = "Failed"
	// RolledBack: an earlier revision replaced the revision.
	RolledBack Type = "RolledBack"
	// Halted: a rollout needs the help of a user.
	Halted Type = "Halted"
	// Held: Penstock deliberately holds back an action. The reason is a freeze, a budget, a
	// rollback or a refused upgrade.
	Held Type = "Held"
	// WaitingForApproval: a revision is proposed, or a plan is computed.
	WaitingForApproval Type = "WaitingForApproval"
	// Completed: a rollout or plan is complete.
	Completed Type = "Completed"
)

// Types returns all types, the most urgent first.
func Types() []Type { return []Type{Failed, RolledBack, Halted, Held, WaitingForApproval, Completed} }

// Lasts reports whether facts of the type end later. A new receiver gets such facts even if they
// began earlier.
func (t Type) Lasts() bool { return t == Halted || t == Held || t == WaitingForApproval }

// Subject is the object that facts are about. All text is one printable line.
type Subject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Extension is the chain of a revision.
	Extension string `json:"extension,omitempty"`
	Package   string `json:"package,omitempty"`
	Version   string `json:"version,omitempty"`
}

// Fact is a statement about an object that is true now.
type Fact struct {
	Type   Type
	Reason string
	// Since distinguishes a fact from an earlier equal fact that ended. At is the time when the
	// fact became true.
	Since, At time.Time
}

// maxText bounds a text that a user or a catalog wrote, in bytes.
const maxText = 128

// Reasons of revision conditions that have their own type.
const (
	reasonDeadline = "ProgressDeadlineExceeded"
	reasonMetric   = "MetricCheckFailed"
	reasonBudget   = "BudgetExceeded"
	reasonFrozen   = "Frozen"
	// reasonTrouble: a pass failed, and is tried again.
	reasonTrouble = "PassFailed"
)

type facts struct{ all []Fact }

func (f *facts) add(kind Type, reason string, since, at metav1.Time) {
	f.all = append(f.all, Fact{Type: kind, Reason: text.Line(reason, maxText), Since: since.Time, At: at.Time})
}

// condition adds a fact with the reason and time of a condition.
func (f *facts) condition(kind Type, c *metav1.Condition) {
	f.add(kind, c.Reason, c.LastTransitionTime, c.LastTransitionTime)
}

// OfRevision returns the facts of a revision.
func OfRevision(r *olmv1alpha1.ClusterExtensionRevision) (Subject, []Fact) {
	chain, _, _ := olm.ChainOf(r.Name)
	subject := Subject{
		Kind: "ClusterExtensionRevision", Name: r.Name, UID: string(r.UID), Extension: chain,
		Package: text.Line(r.Annotations[olmv1alpha1.PackageAnnotation], maxText), Version: text.Line(r.Annotations[olmv1alpha1.VersionAnnotation], maxText),
	}
	f := &facts{}
	is := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
		return nil
	}
	if c := is(olmv1alpha1.ConditionSucceeded); c != nil {
		f.condition(Completed, c)
	}
	if c := is(olmv1alpha1.ConditionRolledBack); c != nil {
		f.condition(RolledBack, c)
	}
	if r.DeletionTimestamp != nil || r.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
		return subject, f.all
	}
	if r.Annotations[olmv1alpha1.ProposedAnnotation] == "true" && r.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused {
		since := r.CreationTimestamp
		if ended := approval.Ended(r.Annotations); ended != nil {
			since = metav1.NewTime(ended.Ended)
		}
		if approval.Pending(r.Annotations) == nil {
			f.add(WaitingForApproval, cmp.Or(r.Annotations[olmv1alpha1.HeldByAnnotation], "Proposed"), since, since)
		}
	}
	if c := is(olmv1alpha1.ConditionHeld); c != nil {
		f.condition(Held, c)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, olmv1alpha1.ConditionProgressing); c != nil && c.Reason == reasonFrozen {
		f.condition(Held, c)
	}
	if c := is(olmv1alpha1.ConditionStalled); c != nil {
		switch c.Reason {
		case reasonTrouble:
		case reasonDeadline, reasonMetric:
			f.condition(Failed, c)
		case reasonBudget:
			f.condition(Held, c)
		default:
			f.condition(Halted, c)
		}
	}
	return subject, f.all
}

// OfPlan returns the facts of a plan.
func OfPlan(p *hcov1alpha1.ConfigurationPlan) (Subject, []Fact) {
	subject, f := Subject{Kind: "ConfigurationPlan", Name: p.Name, UID: string(p.UID)}, &facts{}
	ready := meta.FindStatusCondition(p.Status.Conditions, hcov1alpha1.ConditionReady)
	if ready == nil || p.DeletionTimestamp != nil {
		return subject, nil
	}
	// A plan that is computed again needs a new approval, and may fail again.
	at, drafted := ready.LastTransitionTime, ready.LastTransitionTime
	if p.Status.DraftedAt != nil {
		drafted = *p.Status.DraftedAt
	}
	if at.Before(&drafted) {
		at = drafted
	}
	switch p.Status.Phase {
	case hcov1alpha1.PhaseReviewRequired:
		f.add(WaitingForApproval, ready.Reason, drafted, at)
	case hcov1alpha1.PhaseInProgress:
		if ready.Reason == reasonFrozen {
			f.add(Held, ready.Reason, drafted, at)
		}
	case hcov1alpha1.PhaseFailed, hcov1alpha1.PhasePrerequisiteFailed, hcov1alpha1.PhaseExpired:
		f.add(Failed, ready.Reason, at, at)
	case hcov1alpha1.PhaseCompletedWithErrors:
		f.add(Failed, ready.Reason, drafted, at)
	case hcov1alpha1.PhaseCompleted:
		// Drift that was repaired is no new completion.
		f.add(Completed, ready.Reason, drafted, at)
	case hcov1alpha1.PhasePending, hcov1alpha1.PhaseDrafting, hcov1alpha1.PhaseScheduled, hcov1alpha1.PhaseDrifted, hcov1alpha1.PhaseIgnored:
	}
	return subject, f.all
}

// OfExtension returns the facts of a ClusterExtension that none of its revisions has: the reasons
// why no revision is created.
func OfExtension(e *extension.Extension) (Subject, []Fact) {
	subject, f := Subject{Kind: extension.Kind.Kind, Name: e.Name, UID: string(e.UID), Extension: e.Name}, &facts{}
	if e.DeletionTimestamp != nil {
		return subject, nil
	}
	for _, c := range e.Status.Conditions {
		switch {
		case c.Type == status.UpgradeAvailable && c.Status == metav1.ConditionTrue && c.Reason == string(status.NotUpgradeable):
			// The hold may never end by itself: some operators never report that they can be
			// upgraded.
			f.condition(Held, &c)
		case !status.NeedsPerson(c.Reason) || c.Reason == string(status.Held): // revisions report rollbacks
		case c.Type == status.Ready && c.Status != metav1.ConditionTrue && c.Reason == string(status.Frozen):
			f.condition(Held, &c)
		case c.Type == status.Ready && c.Status != metav1.ConditionTrue:
			f.condition(Failed, &c)
		case c.Type == status.UpgradeAvailable && c.Status == metav1.ConditionTrue:
			f.condition(Held, &c)
		}
	}
	return subject, f.all
}
