package overview

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// Asked is what has become of what a ClusterExtension asks for, in the words of its status.
type Asked struct {
	Name string
	// Reason and Message are of the condition Ready; Pending, and nothing, until Penstock has
	// looked at the spec as it is.
	Reason, Message string
	// Since is when Ready became what it is; before, it is Created.
	Since metav1.Time
	// Created is when the object was made.
	Created metav1.Time
	// Needs is whether somebody has to look: nothing changes before a person acts, or what is
	// tried again has failed.
	Needs bool
	// Retried is whether it is tried again by itself.
	Retried bool
}

// Ask reads what has become of a ClusterExtension.
func Ask(read *extension.Extension) Asked {
	asked := Asked{Name: read.Name, Reason: string(status.Pending), Since: read.CreationTimestamp, Created: read.CreationTimestamp}
	conditions := read.Status.Conditions
	ready := meta.FindStatusCondition(conditions, status.Ready)
	if ready == nil || ready.ObservedGeneration != read.Generation {
		return asked
	}
	asked.Reason, asked.Message, asked.Since = ready.Reason, ready.Message, ready.LastTransitionTime
	stalled := meta.IsStatusConditionTrue(conditions, status.Stalled)
	asked.Retried = !stalled && ready.Status == metav1.ConditionFalse && status.Retried(ready.Reason)
	asked.Needs = stalled || asked.Retried
	return asked
}

// Announced is the message without the file that it may end with, and the words before that.
func (a Asked) Announced() string {
	first, _, more := strings.Cut(a.Message, "\n")
	if end := strings.LastIndex(first, ": "); more && end > 0 {
		return first[:end]
	}
	return first
}

// Attended is whether a revision needs somebody, or holds the owner: it says more than its
// ClusterExtension, whose status repeats it.
func (e Extension) Attended() bool {
	for _, revision := range e.Revisions {
		if NeedsPerson(revision) != nil {
			return true
		}
	}
	return false
}
