package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfile is something that a ConfigurationPlan can configure, and the
// state of the cluster with regard to it. It is computed whenever it is read;
// nothing of it is stored, and it cannot be watched.
type ConfigurationProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name, for spec.profile of a plan.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// description says what the profile is for.
	Description string `json:"description"`
	// options are the options that a plan of the profile can set, with defaults.
	// +optional
	// +listType=atomic
	Options []ProfileOption `json:"options,omitempty"`
	// status is the state of the cluster now.
	Status ConfigurationProfileStatus `json:"status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileList is a list of profiles.
type ConfigurationProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the profiles.
	Items []ConfigurationProfile `json:"items"`
}

// ProfileState tells whether the cluster is as a profile says.
// +enum
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
// +enum
type PrerequisiteState string

const (
	// PrerequisiteMet is there.
	PrerequisiteMet PrerequisiteState = "Met"
	// PrerequisiteMissing is not there.
	PrerequisiteMissing PrerequisiteState = "Missing"
	// PrerequisiteUnknown could not be read.
	PrerequisiteUnknown PrerequisiteState = "Unknown"
)

// ConfigurationProfileStatus compares a cluster with a profile.
type ConfigurationProfileStatus struct {
	// state tells whether the cluster is as the profile says: Active, Inactive,
	// Drifted, or Unknown when something could not be read.
	State ProfileState `json:"state"`
	// plan that holds the profile; no other plan can be active. It is left out when no
	// plan holds the profile.
	// +optional
	Plan string `json:"plan,omitempty"`
	// planPhase is the phase of that plan.
	// +optional
	PlanPhase Phase `json:"planPhase,omitempty"`
	// message says why the state is what it is.
	// +optional
	Message string `json:"message,omitempty"`
	// prerequisites tell whether the cluster has all that the profile needs: Met,
	// Missing, or Unknown when that could not be read.
	Prerequisites PrerequisiteState `json:"prerequisites"`
	// requirements are the conditions of the profile, one by one.
	// +optional
	// +listType=atomic
	Requirements []ProfileRequirement `json:"requirements,omitempty"`
	// impactSeverity is the highest severity of the items. It is left out while it is
	// not known.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// items are the effects of a plan now, with the options of the plan that holds the profile,
	// or without options. They are left out while they are unknown.
	// +optional
	// +listType=atomic
	Items []ProfileItem `json:"items,omitempty"`
}

// ProfileRequirement is a CustomResourceDefinition that a profile looks at.
type ProfileRequirement struct {
	// definition is its name.
	Definition string `json:"definition"`
	// kind that it defines.
	Kind string `json:"kind"`
	// optional means that the profile works without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// state tells whether it is served: Met, Missing or Unknown.
	State PrerequisiteState `json:"state"`
	// message says what to install, or what could not be read.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProfileItem is the effect of a plan on one target now.
type ProfileItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object that is configured.
	TargetRef TargetRef `json:"targetRef"`
	// action is the action on the target: Create, Update or None. It is left out when the cluster
	// refuses the action, or could not be asked; message has the reason.
	// +optional
	Action ItemAction `json:"action,omitempty"`
	// impactSeverity is the disturbance by the action.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// impactReason says why.
	// +optional
	ImpactReason string `json:"impactReason,omitempty"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *BlastRadius `json:"blastRadius,omitempty"`
	// notes are remarks for reviewers.
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
	// message says why there is no action.
	// +optional
	Message string `json:"message,omitempty"`
}
