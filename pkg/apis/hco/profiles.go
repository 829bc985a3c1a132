package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfile is something that a ConfigurationPlan can configure, and how
// the cluster is with regard to it. It is computed whenever it is read; nothing of
// it is stored, and it cannot be watched.
type ConfigurationProfile struct {
	metav1.TypeMeta
	// ObjectMeta has the name, as spec.profile of a plan takes it.
	metav1.ObjectMeta
	// Description says what the profile is for.
	Description string
	// Options are what a plan of the profile can be given, with defaults.
	Options []ProfileOption
	// Status is how the cluster is now.
	Status ConfigurationProfileStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileList is a list of profiles.
type ConfigurationProfileList struct {
	metav1.TypeMeta
	// ListMeta is the standard list metadata.
	metav1.ListMeta
	// Items are the profiles.
	Items []ConfigurationProfile
}

// ProfileState tells whether the cluster is as a profile says.
type ProfileState string

const (
	// ProfileActive is a cluster that is as the profile says, by a plan or without
	// one.
	ProfileActive ProfileState = "Active"
	// ProfileInactive is a cluster that is not as the profile says, and no plan has
	// made it so.
	ProfileInactive ProfileState = "Inactive"
	// ProfileDrifted is a cluster that a plan made as the profile says, and somebody
	// has changed since.
	ProfileDrifted ProfileState = "Drifted"
	// ProfileUnknown is a cluster of which something could not be read.
	ProfileUnknown ProfileState = "Unknown"
)

// PrerequisiteState tells whether a cluster has what a profile needs.
type PrerequisiteState string

const (
	// PrerequisiteMet is there.
	PrerequisiteMet PrerequisiteState = "Met"
	// PrerequisiteMissing is not there.
	PrerequisiteMissing PrerequisiteState = "Missing"
	// PrerequisiteUnknown could not be read.
	PrerequisiteUnknown PrerequisiteState = "Unknown"
)

// ConfigurationProfileStatus is how a cluster is with regard to a profile.
type ConfigurationProfileStatus struct {
	// State tells whether the cluster is as the profile says: Active, Inactive,
	// Drifted, or Unknown when something could not be read.
	State ProfileState
	// Plan that holds the profile; no other can be active. None holds it when it is
	// left out.
	Plan string
	// PlanPhase is where that plan is.
	PlanPhase Phase
	// Message says why the state is what it is.
	Message string
	// Prerequisites tell whether the cluster has all that the profile needs: Met,
	// Missing, or Unknown when that could not be read.
	Prerequisites PrerequisiteState
	// Requirements are what the profile looks at, one by one.
	Requirements []ProfileRequirement
	// ImpactSeverity is the highest of the items. It is left out while it is not
	// known.
	ImpactSeverity ImpactSeverity
	// Items are what a plan would do now, with the options of the plan that holds
	// the profile, or without options. They are left out while that is not known.
	Items []ProfileItem
}

// ProfileRequirement is a CustomResourceDefinition that a profile looks at.
type ProfileRequirement struct {
	// Definition is its name.
	Definition string
	// Kind that it defines.
	Kind string
	// Optional tells that the profile does without it.
	Optional bool
	// State tells whether it is served: Met, Missing or Unknown.
	State PrerequisiteState
	// Message says what to install, or what could not be read.
	Message string
}

// ProfileItem is what a plan would do to one target now.
type ProfileItem struct {
	// Name of the item.
	Name string
	// TargetRef is the object that is configured.
	TargetRef TargetRef
	// Action is what would happen to it: Create, Update or None. It is left out when
	// the cluster refuses it, or could not be asked; message says why.
	Action ItemAction
	// ImpactSeverity is how much that disturbs.
	ImpactSeverity ImpactSeverity
	// ImpactReason says why.
	ImpactReason string
	// BlastRadius is what the item reaches.
	BlastRadius *BlastRadius
	// Notes are what a reviewer should know.
	Notes []string
	// Message says why there is no action.
	Message string
}
