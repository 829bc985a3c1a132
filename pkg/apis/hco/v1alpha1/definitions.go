package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:method=Evaluate,verb=create,subresource=evaluate,input=ProfileEvaluation,result=ProfileEvaluation
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinition is a user-defined profile: its requirements, its options, and the
// desired objects, in CEL. A ConfigurationPlan with its name in spec.profile is computed from it,
// and is reviewed, approved and executed like every plan.
type ConfigurationProfileDefinition struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the profile.
	Spec ConfigurationProfileDefinitionSpec `json:"spec"`
	// status has the server's findings about the definition.
	// +optional
	Status ConfigurationProfileDefinitionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinitionList is a list of definitions.
type ConfigurationProfileDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the definitions.
	Items []ConfigurationProfileDefinition `json:"items"`
}

// ConfigurationProfileDefinitionSpec is a profile. Expressions are in CEL, with the functions of
// Kubernetes. They can use four variables: facts, the state of each requirement in the cluster;
// options, with defaults; variables; and, in items, live, the target in its current state, or null
// if it does not exist.
type ConfigurationProfileDefinitionSpec struct {
	// description is the purpose of the profile, in one sentence.
	Description string `json:"description"`
	// requirements are the CustomResourceDefinitions that the profile uses, and its access to their
	// objects. The profile cannot use other kinds.
	// +listType=map
	// +listMapKey=name
	Requirements []DefinitionRequirement `json:"requirements"`
	// prerequisites are further conditions on the cluster. While one of them is false, plans wait
	// in PrerequisiteFailed and show its message.
	// +optional
	// +listType=atomic
	Prerequisites []DefinitionCheck `json:"prerequisites,omitempty"`
	// options is the schema of spec.options.values of plans: an OpenAPI v3 schema of type object
	// with defaults and descriptions, as in CustomResourceDefinitions. Without it, the profile has
	// no options.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
	// validations are expressions about the options that must be true.
	// +optional
	// +listType=atomic
	Validations []DefinitionCheck `json:"validations,omitempty"`
	// variables are named expressions, used as variables.NAME. They may use earlier variables.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variables []DefinitionVariable `json:"variables,omitempty"`
	// items are the targets in their desired state, in the order of execution.
	// +listType=map
	// +listMapKey=name
	Items []DefinitionItem `json:"items"`
}

// DefinitionAccess is a profile's access to the objects of a requirement.
// +enum
type DefinitionAccess string

const (
	// AccessSchema reads only the CustomResourceDefinition.
	AccessSchema DefinitionAccess = "Schema"
	// AccessRead also reads objects: get, list and watch.
	AccessRead DefinitionAccess = "Read"
	// AccessWrite also configures objects: create, patch and delete.
	AccessWrite DefinitionAccess = "Write"
)

// DefinitionRequirement is a CustomResourceDefinition that a profile uses.
type DefinitionRequirement struct {
	// name of the requirement in expressions: facts.NAME. It must be a CEL identifier.
	Name string `json:"name"`
	// definition is the name of the CustomResourceDefinition, such as
	// kubeletconfigs.machineconfiguration.openshift.io.
	Definition string `json:"definition"`
	// kind that the CustomResourceDefinition defines, such as KubeletConfig.
	Kind string `json:"kind"`
	// access is the profile's access to the objects: Schema, Read or Write. The ServiceAccount of
	// the profile gets the verbs for it. Users who write the definition must have these verbs in
	// the whole cluster. Default: Schema.
	// +default="Schema"
	// +optional
	Access DefinitionAccess `json:"access,omitempty"`
	// install names the component to install if the CustomResourceDefinition is missing.
	Install string `json:"install"`
	// optional is true if the profile works without the CustomResourceDefinition. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// fields of the schema that expressions check: facts.NAME.fields[PATH].
	// +optional
	// +listType=map
	// +listMapKey=path
	Fields []DefinitionField `json:"fields,omitempty"`
}

// DefinitionField is a field of a schema.
type DefinitionField struct {
	// path such as spec.profiles[]; "[]" means the items of a list.
	Path string `json:"path"`
	// optional is true if the profile works without the field. While a field that is not optional
	// is missing, plans wait in PrerequisiteFailed. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// DefinitionCheck is an expression that must be true.
type DefinitionCheck struct {
	// expression must return a bool.
	Expression string `json:"expression"`
	// message explains to a person what is missing.
	Message string `json:"message"`
}

// DefinitionVariable is a named expression.
type DefinitionVariable struct {
	// name of the variable. It must be a CEL identifier.
	Name string `json:"name"`
	// expression that returns the value.
	Expression string `json:"expression"`
}

// DefinitionItem is one target.
type DefinitionItem struct {
	// name of the item.
	Name string `json:"name"`
	// when is an expression that returns a bool. The plan has the item if it is true. Default:
	// true.
	// +optional
	When string `json:"when,omitempty"`
	// target is the object to configure.
	Target DefinitionTarget `json:"target"`
	// object is an expression that returns the object, with only the fields to configure. It may
	// leave out apiVersion, kind, metadata.name and metadata.namespace, which follow from target.
	// If it has them, they must match target.
	Object string `json:"object"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *DefinitionBlastRadius `json:"blastRadius,omitempty"`
	// impact is an expression that returns None, Low, Medium or High. It may use blast, with pools,
	// nodes, waves and reboot.
	Impact string `json:"impact"`
	// reason is an expression that returns the reason of the impact, as text. It may use blast.
	Reason string `json:"reason"`
	// notes is an expression that returns a list of texts for reviewers. It may use blast. All
	// users who can read plans see them.
	// +optional
	Notes string `json:"notes,omitempty"`
	// waits are conditions that the target must meet before the next item begins. The built-in
	// conditions of its kind still apply.
	// +optional
	// +listType=atomic
	Waits []DefinitionWait `json:"waits,omitempty"`
}

// DefinitionTarget names an object.
type DefinitionTarget struct {
	// requirement is the name of a requirement with access Write.
	Requirement string `json:"requirement"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// DefinitionBlastRadius names the nodes that an item affects.
type DefinitionBlastRadius struct {
	// pools is an expression that returns a list of MachineConfigPools from facts.
	Pools string `json:"pools"`
	// reboot is an expression that returns a bool: true if the nodes of the pools reboot. Default:
	// "false".
	// +optional
	Reboot string `json:"reboot,omitempty"`
}

// DefinitionWait is a condition that a plan waits for.
type DefinitionWait struct {
	// expression must return a bool. It uses the current state of live and of facts. While it
	// cannot be evaluated, for instance because the target has no status yet, the plan waits.
	Expression string `json:"expression"`
	// message describes what the plan waits for.
	Message string `json:"message"`
	// messageExpression is an expression that returns a more detailed message, such as the number
	// of ready nodes.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// Conditions of a definition.
const (
	// ConditionAccessGranted is True if the ServiceAccount of a definition has the access that the
	// definition declares.
	ConditionAccessGranted = "AccessGranted"
)

// ConfigurationProfileDefinitionStatus has the server's findings about a definition.
type ConfigurationProfileDefinitionStatus struct {
	// observedGeneration is the generation of spec that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// digest of spec. A plan names the digest that it was computed from.
	// +optional
	Digest string `json:"digest,omitempty"`
	// serviceAccount that executes plans of the profile.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// conditions summarize the definition.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlanDefinition is the definition that a plan was computed from. Later changes of the
// definition do not change the plan.
type PlanDefinition struct {
	// digest of the definition's spec.
	Digest string `json:"digest"`
	// manifest is the name of the stored copy of the definition.
	Manifest string `json:"manifest"`
	// requirements are the kinds that the definition declares, and its access to their objects.
	// +optional
	// +listType=atomic
	Requirements []DeclaredAccess `json:"requirements,omitempty"`
}

// DeclaredAccess is a definition's access to one kind.
type DeclaredAccess struct {
	// definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// access to its objects.
	Access DefinitionAccess `json:"access"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProfileEvaluation returns the effect that a plan of a user-defined profile would have now. POST
// it, with options, to the subresource evaluate of the definition. The server stores nothing and
// writes nothing. The answer shows the targets that you can get and patch.
type ProfileEvaluation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request.
	// +optional
	Spec ProfileEvaluationSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status ProfileEvaluationStatus `json:"status,omitempty"`
}

// ProfileEvaluationSpec is the request.
type ProfileEvaluationSpec struct {
	// options in the form of spec.options.values of a plan.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
}

// ProfileEvaluationStatus is the effect that a plan would have now.
type ProfileEvaluationStatus struct {
	// digest of the definition.
	Digest string `json:"digest"`
	// options of the request, with defaults filled in.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
	// missing names what the cluster lacks.
	// +optional
	Missing string `json:"missing,omitempty"`
	// impactSeverity is the highest severity of the items.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// items are the effects of a plan, one for each target.
	// +optional
	// +listType=atomic
	Items []EvaluatedItem `json:"items,omitempty"`
}

// EvaluatedItem is the effect of a plan on one target now.
type EvaluatedItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object to configure.
	TargetRef TargetRef `json:"targetRef"`
	// impactSeverity is the disturbance that the item causes.
	ImpactSeverity ImpactSeverity `json:"impactSeverity"`
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
	// waits are the messages of the conditions that the plan waits for after the item.
	// +optional
	// +listType=atomic
	Waits []string `json:"waits,omitempty"`
	// object in its desired state. It is set if you can get the target.
	// +optional
	Object *JSONObject `json:"object,omitempty"`
	// diff between the current and the desired state of the target, redacted.
	// +optional
	Diff string `json:"diff,omitempty"`
	// message is the reason why there is no diff.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProfileOption documents an option of a profile.
type ProfileOption struct {
	// name of the option, with the path of its parents, such as limits.total.
	Name string `json:"name"`
	// type of the option's value.
	// +optional
	Type string `json:"type,omitempty"`
	// description of the option and of its effect.
	// +optional
	Description string `json:"description,omitempty"`
	// default is the default value, as JSON.
	// +optional
	Default string `json:"default,omitempty"`
	// allowed describes the allowed values.
	// +optional
	Allowed string `json:"allowed,omitempty"`
}

// IsOwn reports whether a profile is user-defined. Names of user-defined profiles are DNS labels.
// Names of built-in profiles have capitals.
func IsOwn(name ProfileName) bool { return len(validation.IsDNS1123Label(string(name))) == 0 }
