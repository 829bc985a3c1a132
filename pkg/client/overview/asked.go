package overview

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// Asked is the state of a ClusterExtension's request, in the words of its status.
type Asked struct {
	Name string
	// Reason and Message are from the condition Ready. They are Pending and "" until Penstock has
	// observed the current spec.
	Reason, Message string
	// Since is the time of the last change of the condition Ready. Without the condition, it equals
	// Created.
	Since metav1.Time
	// Created is the creation time of the object.
	Created metav1.Time
	// Needs is true if a user must look: nothing changes before a user acts, or a repeated attempt
	// has failed.
	Needs bool
	// Retried is true if Penstock retries by itself.
	Retried bool
	// Ready is true if the spec's content is installed and available.
	Ready bool
	// UpgradeReason and UpgradeMessage are from the condition UpgradeAvailable if it is True.
	UpgradeReason, UpgradeMessage string
	// Installed is the installed version; empty for none.
	Installed string
}

// Ask returns the state of a ClusterExtension's request.
func Ask(read *extension.Extension) Asked {
	asked := Asked{Name: read.Name, Reason: string(status.Pending), Since: read.CreationTimestamp, Created: read.CreationTimestamp}
	if read.Status.Install != nil {
		asked.Installed = read.Status.Install.Bundle.Version
	}
	conditions := read.Status.Conditions
	ready := meta.FindStatusCondition(conditions, status.Ready)
	if ready == nil || ready.ObservedGeneration != read.Generation {
		return asked
	}
	asked.Reason, asked.Message, asked.Since = ready.Reason, ready.Message, ready.LastTransitionTime
	asked.Ready = ready.Status == metav1.ConditionTrue
	if upgrade := meta.FindStatusCondition(conditions, status.UpgradeAvailable); upgrade != nil && upgrade.Status == metav1.ConditionTrue {
		asked.UpgradeReason, asked.UpgradeMessage = upgrade.Reason, upgrade.Message
	}
	stalled := meta.IsStatusConditionTrue(conditions, status.Stalled)
	asked.Retried = !stalled && ready.Status == metav1.ConditionFalse && status.Retried(ready.Reason)
	asked.Needs = stalled || asked.Retried
	return asked
}

// Announced returns a message without a file at its end and the words that introduce the file.
func Announced(message string) string {
	first, _, more := strings.Cut(message, "\n")
	if end := strings.LastIndex(first, ": "); more && end > 0 {
		return first[:end]
	}
	return first
}

// Join adds to extensions the requests of their ClusterExtensions. It also adds the
// ClusterExtensions without revisions, by name.
func Join(extensions []Extension, asked []Asked) []Extension {
	at := map[string]int{}
	for i := range extensions {
		at[extensions[i].Name] = i
	}
	for i := range asked {
		one := &asked[i]
		if found, has := at[one.Name]; has {
			extensions[found].Asked = one
			continue
		}
		extensions = append(extensions, Extension{Name: one.Name, Asked: one})
	}
	slices.SortFunc(extensions, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	return extensions
}
