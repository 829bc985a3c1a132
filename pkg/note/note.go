// Package note defines the reasons and severities of notes in a diff, and decides which notes hold
// an automatic upgrade. Both are API: the annotation penstock.dev/hold-on names reasons, and
// docs/reference/notes.md lists them.
package note

import "slices"

// Severity is the importance of a note.
type Severity string

// Severities: a reviewer must see Critical, should see Warning, and can skip Info.
const (
	Critical Severity = "Critical"
	Warning  Severity = "Warning"
	Info     Severity = "Info"
)

// Severities returns all severities, most severe first.
func Severities() []Severity { return []Severity{Critical, Warning, Info} }

// Rank returns 0 for the most severe severity. An unknown severity ranks below all known ones.
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

	// Incomplete holds an upgrade whose diff is incomplete. No note has this reason.
	Incomplete = "Incomplete"
)

// Reason is a row of the table in docs/reference/notes.md.
type Reason struct {
	Name string
	// Holds is true if a note of this reason holds an upgrade by default, from Warning on.
	Holds bool
	// Says describes the content of a note of this reason.
	Says string
}

// Reasons returns all reasons, in the order of docs/reference/notes.md.
func Reasons() []Reason {
	return []Reason{
		{Deleted, true, "the object will be deleted. Critical for a Namespace, a CustomResourceDefinition and a PersistentVolumeClaim. Info for roles and bindings, and for a ConfigMap or Secret that a new one replaces: it has the same keys, and the same name up to a digest or number at the end"},
		{RightsGained, true, "each right that a role gives; a role that is aggregated into another one; an aggregation rule. A Warning or more for wildcards, escalate, bind, impersonate, Secrets, nodes/proxy, pods/exec, tokens, certificates, roles, admission and APIServices, and for rules such as `*/token` that include one of these"},
		{RightsLost, false, "rights that a role no longer gives"},
		{SubjectsGained, true, "a subject that is bound to a role. Info when the role is new in the revision"},
		{SubjectsLost, false, "a subject that is no longer bound to a role"},
		{Privilege, true, "pods gain the network, processes, files or ports of their node, capabilities, root, or another ServiceAccount; pods lose a setting that prevents these; a new workload runs as a ServiceAccount that no pod had"},
		{VersionLost, true, "a version of a definition is removed or no longer served, or its kind changes"},
		{FieldRemoved, true, "the schema of a definition no longer has a field. Info below `.status`"},
		{Narrowed, true, "the schema of a definition refuses what it accepted. Info below `.status`"},
		{StorageVersion, false, "another version of a definition is stored, or versions are converted in another way; Info for a new version"},
		{Image, true, "the old and the new image of a container or of a `RELATED_IMAGE_…` variable. A Warning when the repository changes, or when a new container, variable or workload has an image of a new repository"},
		{Signer, true, "the image of the next revision lacks a signer of the previous one. Critical"},
		{Webhook, true, "a new webhook; a webhook that sees more requests, has another address, or now makes requests fail when it is down; a new or changed admission policy or binding; an APIService that is new or has another address"},
		{Immutable, false, "the API server refuses the change: the object must be deleted and created"},
		{Restart, false, "the pod template changed. A Warning with `strategy: Recreate`"},
		{Replicas, false, "the manifest no longer has `replicas`, so a number other than 1 becomes 1"},
		{APIVersion, false, "the manifest is written in another version"},
		{Incomplete, true, "objects were not compared, or notes are omitted. It always holds"},
	}
}
