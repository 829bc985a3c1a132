package screens

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/text"
)

// Rows are the rows of the overview: all rows in the first message, changed rows in later messages.
type Rows struct {
	Extensions []ExtensionRow `json:"extensions,omitempty"`
	Plans      []PlanRow      `json:"plans,omitempty"`
	Sets       []SetRow       `json:"sets,omitempty"`
	// GoneExtensions, GonePlans and GoneSets are names.
	GoneExtensions []string `json:"goneExtensions,omitempty"`
	GonePlans      []string `json:"gonePlans,omitempty"`
	GoneSets       []string `json:"goneSets,omitempty"`
}

// Signal is the state of a row, with the values of package advice.
type Signal = advice.Signal

// These are the signals.
const (
	Healthy        = advice.Healthy
	InProgress     = advice.InProgress
	NeedsAttention = advice.NeedsAttention
	Stopped        = advice.Stopped
	Review         = advice.Review
)

// ExtensionRow is one extension on the overview.
type ExtensionRow struct {
	Name   string `json:"name"`
	Signal Signal `json:"signal"`
	// State is a reason of the API, or a lifecycle state.
	State string `json:"state"`
	// Message explains State, shortened.
	Message string `json:"message,omitempty"`
	// Do is the action that the user must take; empty for none.
	Do       string `json:"do,omitempty"`
	Revision string `json:"revision,omitempty"`
	Version  string `json:"version,omitempty"`
	// Phase is the phase that is being rolled out; empty for none.
	Phase string `json:"phase,omitempty"`
	// Ready is the number of available objects, out of Objects.
	Ready   int `json:"ready"`
	Objects int `json:"objects"`
	// Since is the time when State began, in RFC 3339.
	Since string `json:"since,omitempty"`
	// Proposed is the newest revision while it waits for a review, with its version and the name of
	// its diff.
	Proposed        string `json:"proposed,omitempty"`
	ProposedVersion string `json:"proposedVersion,omitempty"`
	ProposedDiff    string `json:"proposedDiff,omitempty"`
	// Frozen names the user who froze the cluster, and the reason; empty when it is not frozen.
	Frozen string `json:"frozen,omitempty"`
}

// PlanRow is one plan on the overview.
type PlanRow struct {
	Name    string `json:"name"`
	Signal  Signal `json:"signal"`
	State   string `json:"state"`
	Profile string `json:"profile"`
	Impact  string `json:"impact,omitempty"`
	Message string `json:"message,omitempty"`
	Do      string `json:"do,omitempty"`
	// Done is the number of completed or skipped items, out of Items.
	Done  int `json:"done"`
	Items int `json:"items"`
	// Begins is the time when the window of the plan opens, in RFC 3339; empty without a window.
	Begins string `json:"begins,omitempty"`
}

// maxRowMessage bounds the message of a row, in bytes: a row is at most a few hundred bytes.
const maxRowMessage = 240

func extensionRow(e overview.Extension) ExtensionRow {
	first := advice.Extension(e)[0]
	row := ExtensionRow{Name: e.Name, Signal: first.Signal, State: first.State(), Message: text.Line(first.Announced(), maxRowMessage), Since: when(&first.Since)}
	if row.Signal == NeedsAttention || e.Newest() == nil && first.Signal != InProgress {
		row.Do = text.Line(first.Do, maxRowMessage)
	}
	current := e.Current()
	if current == nil {
		return row
	}
	row.Revision, row.Version, row.Phase, row.Frozen = current.Name, overview.Version(current), movingPhase(current), frozen(current)
	row.Ready, row.Objects = overview.Objects(current)
	if row.Since == "" {
		row.Since = when(&current.CreationTimestamp)
	}
	if proposed := e.Proposed(); proposed != nil {
		row.Proposed, row.ProposedVersion, row.ProposedDiff = proposed.Name, overview.Version(proposed), comparison(e, proposed)
	}
	return row
}

func signalOf(revision *v1alpha1.ClusterExtensionRevision) Signal {
	return advice.Revision(revision, nil).Signal
}

// comparison returns the name of the diff that shows the changes of a revision: against the rolled
// out revision, or against the previous revision.
func comparison(e overview.Extension, revision *v1alpha1.ClusterExtensionRevision) string {
	if earlier := e.Before(revision); earlier != nil {
		return earlier.Name + ".." + revision.Name
	}
	return ".." + revision.Name
}

// movingPhase returns the first phase that is not available: "phase 2 of 3: deploy".
func movingPhase(revision *v1alpha1.ClusterExtensionRevision) string {
	if signalOf(revision) != InProgress {
		return ""
	}
	for i := range revision.Status.Phases {
		phase := &revision.Status.Phases[i]
		if phase.State == v1alpha1.PhaseStateProgressing || phase.State == v1alpha1.PhaseStateFailing || phase.State == v1alpha1.PhaseStatePending {
			return fmt.Sprintf("phase %d of %d: %s", i+1, len(revision.Status.Phases), phase.Name)
		}
	}
	return ""
}

// reasonFrozen is the reason while an object waits for the end of a freeze.
const reasonFrozen = "Frozen"

// frozen returns the user who froze the cluster, and the reason.
func frozen(revision *v1alpha1.ClusterExtensionRevision) string {
	found := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionProgressing)
	if found == nil || found.Reason != reasonFrozen {
		return ""
	}
	return text.Line(found.Message, maxRowMessage)
}

func planRow(plan *hcov1alpha1.ConfigurationPlan) PlanRow {
	status := &plan.Status
	row := PlanRow{
		Name: plan.Name, Profile: string(plan.Spec.Profile), Signal: planSignal(plan), Impact: string(status.ImpactSeverity),
		State: hcov1alpha1.PhaseText(string(status.Phase), plan.Spec.RestoreRun), Message: text.Line(status.Message, maxRowMessage), Items: len(status.Items),
	}
	for i := range status.Items {
		if state := status.Items[i].State; state == hcov1alpha1.ItemCompleted || state == hcov1alpha1.ItemSkipped {
			row.Done++
		}
	}
	if status.Phase == hcov1alpha1.PhaseReviewRequired {
		// The message explains how to approve with kubectl. The screen of the plan has a button
		// instead.
		row.Message = ""
	}
	if row.Signal == NeedsAttention {
		row.Do = text.Line(advice.Plan(plan).Do, maxRowMessage)
	}
	if status.Window != nil && (status.Phase == hcov1alpha1.PhaseReviewRequired || status.Phase == hcov1alpha1.PhaseScheduled) {
		row.Begins = when(&status.Window.OpensAt)
	}
	return row
}

func planSignal(plan *hcov1alpha1.ConfigurationPlan) Signal { return advice.Plan(plan).Signal }

func when(at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05Z")
}
