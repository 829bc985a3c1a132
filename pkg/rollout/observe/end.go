package observe

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Outcome is the result of a Job.
type Outcome string

// Outcomes of a Job; empty for a Job that has not finished.
const (
	OutcomeComplete Outcome = "Complete"
	OutcomeFailed   Outcome = "Failed"
	// OutcomeUnknown is for a Job that was deleted while no watch ran.
	OutcomeUnknown Outcome = "Unknown"
)

// End is the result of a deleted Job that a watch had shown.
type End struct {
	UID types.UID
	// Outcome is the outcome of the Job when it was deleted.
	Outcome Outcome
}

// maxEnds is the largest number of ends that a watch keeps.
const maxEnds = 1000

// IsJob reports whether an object is a Job.
func IsJob(id manifest.ID) bool { return id.Group == "batch" && id.Kind == "Job" }

// OutcomeOf returns the outcome in the status of a live Job. It is empty for all other objects.
func OutcomeOf(id manifest.ID, live *unstructured.Unstructured) Outcome {
	if live == nil || !IsJob(id) {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete":
			return OutcomeComplete
		case "Failed":
			return OutcomeFailed
		}
	}
	return ""
}
