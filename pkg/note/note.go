// Package note has the reasons and severities of the notes of a diff, and which notes hold an
// upgrade that nobody asked for. Both are API: the annotation penstock.dev/hold-on names reasons,
// and docs/reference/notes.md lists them.
package note

import "slices"

// Severity says how much a note matters.
type Severity string

// The severities: what nobody should overlook, what deserves a look, and what is good to know.
const (
	Critical Severity = "Critical"
	Warning  Severity = "Warning"
	Info     Severity = "Info"
)

// Severities are all of them, the most severe first.
func Severities() []Severity { return []Severity{Critical, Warning, Info} }

// Rank is 0 for the most severe. A severity that is not known is below all others.
func (s Severity) Rank() int {
	if rank := slices.Index(Severities(), s); rank >= 0 {
		return rank
	}
	return len(Severities())
}

// Reasons of notes about a difference between two revisions.
const (
	Deleted        = "Deleted"
	Immutable      = "Immutable"
	APIVersion     = "APIVersion"
	Image          = "Image"
	Restart        = "Restart"
	Replicas       = "Replicas"
	Privilege      = "Privilege"
	RightsGained   = "RightsGained"
	RightsLost     = "RightsLost"
	SubjectsGained = "SubjectsGained"
	SubjectsLost   = "SubjectsLost"
	VersionLost    = "VersionLost"
	StorageVersion = "StorageVersion"
	FieldRemoved   = "FieldRemoved"
	Narrowed       = "Narrowed"
	Webhook        = "Webhook"
	Signer         = "Signer"

	// Incomplete is the reason of what holds an upgrade whose diff does not show all: no note.
	Incomplete = "Incomplete"
)

// Reason is a reason in the table of docs/reference/notes.md.
type Reason struct {
	Name string
	// Holds is whether a note of this reason holds an upgrade by default, from Warning on.
	Holds bool
	// Says is what a note of this reason says.
	Says string
}

// Reasons are all reasons, in the order of the page.
func Reasons() []Reason {
	return []Reason{
		{Deleted, true, "the object will be deleted. Critical for a Namespace, a CustomResourceDefinition and a PersistentVolumeClaim, because of what is deleted with them; Info for roles and bindings, whose notes on rights say what is lost. Info for a ConfigMap or Secret that a new one replaces: with the same keys, and the same name up to a digest or number at its end"},
		{RightsGained, true, "rights that a role gives, one by one; a role that is aggregated into another one; an aggregation rule. A Warning or more for wildcards, escalate, bind, impersonate, Secrets, nodes/proxy, pods/exec, tokens, certificates, roles, admission and APIServices. The same holds for rules such as `*/token` that contain one of these"},
		{RightsLost, false, "rights that a role no longer gives"},
		{SubjectsGained, true, "a subject that is bound to a role. Info when the role is new in the revision: the notes on the role say which rights it gives"},
		{SubjectsLost, false, "a subject that is no longer bound to a role"},
		{Privilege, true, "pods gain the network, processes, files or ports of their node, capabilities, root, or another ServiceAccount; they lose what keeps them from that; a new workload runs as a ServiceAccount that no pod had"},
		{VersionLost, true, "a version of a definition is removed or no longer served, or its kind changes"},
		{FieldRemoved, true, "the schema of a definition no longer has a field: its content is dropped. Info below `.status`"},
		{Narrowed, true, "the schema of a definition refuses what it accepted. Info below `.status`"},
		{StorageVersion, false, "another version of a definition is stored, or versions are converted in another way; Info for a new version"},
		{Image, true, "the image of a container or of a `RELATED_IMAGE_…` variable, old and new; a Warning when it comes from another repository; a Warning, too, when a new container, variable or workload has an image of a repository that none of the old ones had"},
		{Signer, true, "the image of the next revision lacks a signer that the one before had, by the annotation `penstock.dev/verified`. It is Critical and about no object"},
		{Webhook, true, "a new webhook, one that sees more requests or is called elsewhere, or one that now makes requests fail when it is down; an admission policy or binding that is new or changes; an APIService that is new or sends requests elsewhere"},
		{Immutable, false, "the API server refuses the change: the object has to be deleted and created"},
		{Restart, false, "the pod template changed. A Warning with `strategy: Recreate`"},
		{Replicas, false, "the manifest no longer has `replicas`, and another number than 1 becomes 1"},
		{APIVersion, false, "the manifest is written in another version"},
		{Incomplete, true, "objects were not compared, or notes are left out. It always holds, whatever the list says"},
	}
}
