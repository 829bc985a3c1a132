package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// longestNote is the API's limit for the note of an event, in bytes.
const longestNote = 1024

// Reasons of events that no condition has.
const (
	eventInstalled        = "Installed"
	eventUpgradeAvailable = "UpgradeAvailable"
)

// Event is a Kubernetes event for users.
type Event struct {
	// Warning is true if a user should act or look.
	Warning bool
	// Reason is one word. Note has at most 1024 bytes.
	Reason, Note string
}

// Events returns the events between two statuses; none if both are equal. A changed counter in a
// message is not an event.
func Events(before, after extension.Status) []Event {
	var events []Event
	add := func(warning bool, reason, note string) {
		events = append(events, Event{Warning: warning, Reason: reason, Note: text.Clip(note, longestNote)})
	}
	told := false // the installation event already reports Ready
	if was, is := versionOf(before), versionOf(after); is != "" && is != was {
		told = meta.IsStatusConditionTrue(after.Conditions, Ready)
		note := is + " is installed"
		if was != "" {
			note = fmt.Sprintf("%s is installed, after %s", is, was)
		}
		add(false, eventInstalled, note)
	}
	if now := turned(before, after, Ready); now != nil && !told {
		add(now.Status != metav1.ConditionTrue && meta.IsStatusConditionTrue(after.Conditions, Stalled), now.Reason, now.Message)
	}
	if now := turned(before, after, Deprecated); now != nil && now.Status == metav1.ConditionTrue {
		add(true, ReasonDeprecated, now.Message)
	}
	if now := turned(before, after, UpgradeAvailable); now != nil && now.Status == metav1.ConditionTrue {
		add(false, eventUpgradeAvailable, now.Message)
	}
	return events
}

// turned returns a condition whose status or reason has changed; nil if neither has.
func turned(before, after extension.Status, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

func versionOf(status extension.Status) string {
	if status.Install == nil {
		return ""
	}
	return status.Install.Bundle.Version
}
