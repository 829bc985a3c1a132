package configurationplan

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco"
)

// restoreLabel is the label that Velero sets on each object that it creates; its value is the name
// of the restore.
const restoreLabel = "velero.io/restore-name"

// copyOf returns the reason why a new plan is a copy of a stored plan, or "". Action Apply in a
// copy may be an approval from another cluster. copyOf examines only traces of a backup or restore,
// which a user's file does not have.
func copyOf(plan *hco.ConfigurationPlan) string {
	if name, ok := plan.Labels[restoreLabel]; ok {
		return "label " + restoreLabel + " says that restore " + name + " created the plan"
	}
	applied, ok := plan.Annotations[corev1.LastAppliedConfigAnnotation]
	if !ok {
		return ""
	}
	var file struct {
		Spec struct {
			Action hco.Action `json:"action"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(applied), &file); err != nil || file.Spec.Action == plan.Spec.Action {
		return "" // kubectl apply created the annotation from the same file
	}
	return "the file of the plan, in annotation " + corev1.LastAppliedConfigAnnotation + ", has another action"
}
