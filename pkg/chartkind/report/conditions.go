package report

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	Deployed       = "Deployed"
	ReleaseFailed  = "ReleaseFailed"
	Irreconcilable = "Irreconcilable"
	Paused         = "Paused"
	Ready          = "Ready"
	Progressing    = "Progressing"
)

// Reasons of conditions. The reasons of Progressing are also condition types.
const (
	ReasonInstallSuccessful   = "InstallSuccessful"
	ReasonUpgradeSuccessful   = "UpgradeSuccessful"
	ReasonInstallError        = "InstallError"
	ReasonUpgradeError        = "UpgradeError"
	ReasonReconcileError      = "ReconcileError"
	ReasonReconciling         = "Reconciling"
	ReasonReconcileSuccessful = "ReconcileSuccessful"
	ReasonDeleting            = "Deleting"
	ReasonPaused              = "PausedByAnnotation"
	ReasonNone                = "NoFailure"
	ReasonNoWorkloads         = "NoWorkloads"
	ReasonWorkloadsReady      = "WorkloadsReady"
	ReasonWorkloadsNotReady   = "WorkloadsNotReady"
	ReasonWorkloadsUnknown    = "WorkloadsUnknown"
)

// maxMessage limits a message, in bytes.
const maxMessage = 1024

// Status is the part of the stored status that this package writes.
type Status struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	ReconciledVersion  string `json:"reconciledVersion,omitempty"`
	// Conditions are a list map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StatusOf reads the stored status. An unreadable condition counts as absent. If a type occurs
// twice, the first condition counts.
func StatusOf(object *unstructured.Unstructured) Status {
	var out Status
	out.ObservedGeneration, _, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	out.ReconciledVersion, _, _ = unstructured.NestedString(object.Object, "status", "reconciledVersion")
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	items, _ := list.([]any)
	for _, item := range items {
		var condition metav1.Condition
		content, err := json.Marshal(item)
		if err != nil || json.Unmarshal(content, &condition) != nil || condition.Type == "" {
			continue
		}
		if out.find(condition.Type) == nil {
			out.Conditions = append(out.Conditions, condition)
		}
	}
	return out
}

func (s Status) find(kind string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// Is reports whether a condition has a status.
func (s Status) Is(kind string, status metav1.ConditionStatus) bool {
	found := s.find(kind)
	return found != nil && found.Status == status
}

// ProgressOf returns the reason of Progressing; empty without that condition.
func ProgressOf(object *unstructured.Unstructured) string {
	if found := StatusOf(object).find(Progressing); found != nil {
		return found.Reason
	}
	return ""
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: Clip(message)}
}

// Clip shortens a message to the length limit of a condition.
func Clip(message string) string {
	return text.Clip(strings.TrimSpace(message), maxMessage)
}

// stamped sets lastTransitionTime: the stored time if the status is unchanged, otherwise now.
func stamped(stored Status, now metav1.Time, wanted ...metav1.Condition) []metav1.Condition {
	for i := range wanted {
		wanted[i].LastTransitionTime = now.Rfc3339Copy()
		if before := stored.find(wanted[i].Type); before != nil && before.Status == wanted[i].Status && !before.LastTransitionTime.IsZero() {
			wanted[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return wanted
}

// Same reports whether the stored status already has all wanted conditions.
func Same(stored Status, wanted []metav1.Condition) bool {
	for _, one := range wanted {
		before := stored.find(one.Type)
		if before == nil || before.Status != one.Status || before.Reason != one.Reason || before.Message != one.Message ||
			before.ObservedGeneration != one.ObservedGeneration {
			return false
		}
	}
	return true
}
