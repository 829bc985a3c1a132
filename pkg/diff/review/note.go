package review

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Severity says how much a note matters.
type Severity string

// The severities: what nobody should overlook, what deserves a look, and what
// is good to know.
const (
	Critical Severity = "Critical"
	Warning  Severity = "Warning"
	Info     Severity = "Info"
)

// Note is one thing that matters, in words.
type Note struct {
	Severity Severity
	// Reason is one word, such as "Immutable"; docs/reference/diff.md has all.
	Reason string
	// ID is of the object that the note is about.
	manifest.ID
	// Message is one line for people, such as "image of container manager:
	// example.com/a:1 -> example.com/a:2". It does not name the object.
	Message string
}

// String is for people.
func (n Note) String() string {
	return fmt.Sprintf("%s: %s: %s", n.Severity, printable.Line(n.ID.String()), n.Message)
}

// Sort puts the most severe notes first, and leaves the others in their order.
func Sort(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

func (s Severity) rank() int {
	return slices.Index([]Severity{Critical, Warning, Info}, s)
}

// The reasons of notes.
const (
	// reasonDeleted: the object will be deleted, and what goes with it.
	reasonDeleted = "Deleted"
	// reasonImmutable: the API server will refuse the change.
	reasonImmutable = "Immutable"
	// reasonAPIVersion: the manifest is written in another API version.
	reasonAPIVersion = "APIVersion"

	// reasonImage: a container gets another image, comes or goes.
	reasonImage = "Image"
	// reasonRestart: pods are replaced.
	reasonRestart = "Restart"
	// reasonReplicas: a workload loses its number of pods.
	reasonReplicas = "Replicas"
	// reasonPrivilege: pods may do more on their node.
	reasonPrivilege = "Privilege"

	// reasonRightsGained and reasonRightsLost: rules of a role.
	reasonRightsGained = "RightsGained"
	reasonRightsLost   = "RightsLost"
	// reasonSubjectsGained and reasonSubjectsLost: who is bound to a role.
	reasonSubjectsGained = "SubjectsGained"
	reasonSubjectsLost   = "SubjectsLost"

	// reasonVersionLost: a version of a CustomResourceDefinition is no longer
	// served, or is removed.
	reasonVersionLost = "VersionLost"
	// reasonStorageVersion: another version is stored.
	reasonStorageVersion = "StorageVersion"
	// reasonFieldRemoved: a schema no longer has a field; it is dropped.
	reasonFieldRemoved = "FieldRemoved"
	// reasonNarrowed: a schema refuses what it accepted.
	reasonNarrowed = "Narrowed"

	// reasonWebhook: a webhook sees more requests, or fails them.
	reasonWebhook = "Webhook"
)
