package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfile is a kind of configuration that a ConfigurationPlan can apply, and the state
// of the cluster compared with it. The server computes it for each read and does not store it. It
// cannot be watched.
type ConfigurationProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name, to use as spec.profile of a plan.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// description is the purpose of the profile.
	Description string `json:"description"`
	// options are the options that a plan of the profile can set, with defaults.
	// +optional
	// +listType=atomic
	Options []ProfileOption `json:"options,omitempty"`
	// status is the current state of the cluster.
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

// ProfileState reports whether the cluster matches a profile.
// +enum
type ProfileState string

const (
	// ProfileActive means that the cluster matches the profile, with or without a plan.
	ProfileActive ProfileState = "Active"
	// ProfileInactive means that the cluster does not match the profile, and no plan has applied
	// it.
	ProfileInactive ProfileState = "Inactive"
	// ProfileDrifted means that a plan applied the profile, and another writer changed a target
	// later.
	ProfileDrifted ProfileState = "Drifted"
	// ProfileUnknown means that a part of the cluster could not be read.
	ProfileUnknown ProfileState = "Unknown"
)

// PrerequisiteState reports whether a cluster has everything that a profile needs.
// +enum
type PrerequisiteState string

const (
	// PrerequisiteMet means that it exists.
	PrerequisiteMet PrerequisiteState = "Met"
	// PrerequisiteMissing means that it does not exist.
	PrerequisiteMissing PrerequisiteState = "Missing"
	// PrerequisiteUnknown means that it could not be read.
	PrerequisiteUnknown PrerequisiteState = "Unknown"
)

// ConfigurationProfileStatus compares a cluster with a profile.
type ConfigurationProfileStatus struct {
	// state reports whether the cluster matches the profile: Active, Inactive, Drifted, or Unknown
	// if a part of the cluster could not be read.
	State ProfileState `json:"state"`
	// plan that holds the profile. No other plan of the profile can be active. It is absent if no
	// plan holds the profile.
	// +optional
	Plan string `json:"plan,omitempty"`
	// planPhase is the phase of that plan.
	// +optional
	PlanPhase Phase `json:"planPhase,omitempty"`
	// message is the reason of the state.
	// +optional
	Message string `json:"message,omitempty"`
	// prerequisites reports whether the cluster has everything that the profile needs: Met,
	// Missing, or Unknown if that could not be read.
	Prerequisites PrerequisiteState `json:"prerequisites"`
	// requirements are the CustomResourceDefinitions that the profile uses.
	// +optional
	// +listType=atomic
	Requirements []ProfileRequirement `json:"requirements,omitempty"`
	// impactSeverity is the highest severity of the items. It is absent while it is unknown.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// items are the effects that a plan would have now, with the options of the plan that holds the
	// profile, or without options. They are absent while they are unknown.
	// +optional
	// +listType=atomic
	Items []ProfileItem `json:"items,omitempty"`
}

// ProfileRequirement is a CustomResourceDefinition that a profile uses.
type ProfileRequirement struct {
	// definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// kind that the CustomResourceDefinition defines.
	Kind string `json:"kind"`
	// optional is true if the profile works without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// state reports whether the cluster serves the kind: Met, Missing or Unknown.
	State PrerequisiteState `json:"state"`
	// message names the component to install, or what could not be read.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProfileItem is the effect that a plan would have on one target now.
type ProfileItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object to configure.
	TargetRef TargetRef `json:"targetRef"`
	// action is the action on the target: Create, Update or None. It is absent if the cluster
	// refuses the action, or if Penstock could not check it. message then has the reason.
	// +optional
	Action ItemAction `json:"action,omitempty"`
	// impactSeverity is the disturbance that the action causes.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// impactReason is the reason of impactSeverity, for a person.
	// +optional
	ImpactReason string `json:"impactReason,omitempty"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *BlastRadius `json:"blastRadius,omitempty"`
	// notes are remarks for reviewers.
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
	// message is the reason why there is no action.
	// +optional
	Message string `json:"message,omitempty"`
}
