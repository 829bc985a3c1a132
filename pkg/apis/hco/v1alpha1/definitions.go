package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:method=Evaluate,verb=create,subresource=evaluate,input=ProfileEvaluation,result=ProfileEvaluation
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinition is a profile of your own: what it needs of the cluster,
// its options, and the objects that it wants, in CEL. A ConfigurationPlan with its name in
// spec.profile is computed from it, and reviewed, approved and executed as any other.
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

// ConfigurationProfileDefinitionSpec is a profile. Expressions are in CEL, with the
// functions that Kubernetes has. They can use: facts, what the cluster has of each
// requirement; options, with defaults; variables; and, in items, live, which is the
// target as it is, or null.
type ConfigurationProfileDefinitionSpec struct {
	// description says in one sentence what the profile is for.
	Description string `json:"description"`
	// requirements are the CustomResourceDefinitions that the profile looks at, and what
	// it does with their objects. The profile can use no others.
	// +listType=map
	// +listMapKey=name
	Requirements []DefinitionRequirement `json:"requirements"`
	// prerequisites are further conditions on the cluster. While one is false, plans wait in
	// PrerequisiteFailed, and show its message.
	// +optional
	// +listType=atomic
	Prerequisites []DefinitionCheck `json:"prerequisites,omitempty"`
	// options is the schema of spec.options.values of plans: an OpenAPI v3 schema of type
	// object, as CustomResourceDefinitions have it, with defaults and descriptions.
	// Without it there are no options.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
	// validations are expressions over several options that must be true.
	// +optional
	// +listType=atomic
	Validations []DefinitionCheck `json:"validations,omitempty"`
	// variables are expressions with names, such as variables.pools. They may name
	// variables before them.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variables []DefinitionVariable `json:"variables,omitempty"`
	// items are the targets as they should be, in the order in which they are
	// configured.
	// +listType=map
	// +listMapKey=name
	Items []DefinitionItem `json:"items"`
}

// DefinitionAccess is a profile's use of the objects of a requirement.
// +enum
type DefinitionAccess string

const (
	// AccessSchema looks at the definition only.
	AccessSchema DefinitionAccess = "Schema"
	// AccessRead reads objects: get, list and watch.
	AccessRead DefinitionAccess = "Read"
	// AccessWrite reads and configures objects: also create, patch and delete.
	AccessWrite DefinitionAccess = "Write"
)

// DefinitionRequirement is a CustomResourceDefinition that a profile looks at.
type DefinitionRequirement struct {
	// name under which expressions find it: facts.NAME. A CEL identifier.
	Name string `json:"name"`
	// definition is the name of the CustomResourceDefinition, such as
	// kubeletconfigs.machineconfiguration.openshift.io.
	Definition string `json:"definition"`
	// kind that it defines, such as KubeletConfig.
	Kind string `json:"kind"`
	// access is the profile's use of the objects: Schema, Read or Write. The ServiceAccount of
	// the profile gets the verbs for that, and users who write the definition must have them in
	// the whole cluster. Default: Schema.
	// +default="Schema"
	// +optional
	Access DefinitionAccess `json:"access,omitempty"`
	// install says what to install where the definition is missing.
	Install string `json:"install"`
	// optional means that the profile works without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// fields of the schema that expressions ask for: facts.NAME.fields[PATH].
	// +optional
	// +listType=map
	// +listMapKey=path
	Fields []DefinitionField `json:"fields,omitempty"`
}

// DefinitionField is a field of a schema.
type DefinitionField struct {
	// path such as spec.profiles[]; "[]" stands for the items of a list.
	Path string `json:"path"`
	// optional means that the profile works without the field. While any other field is
	// missing, plans wait in PrerequisiteFailed.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// DefinitionCheck is an expression that must be true.
type DefinitionCheck struct {
	// expression is of type bool.
	Expression string `json:"expression"`
	// message says in words what is missing.
	Message string `json:"message"`
}

// DefinitionVariable is an expression with a name.
type DefinitionVariable struct {
	// name is a CEL identifier.
	Name string `json:"name"`
	// expression makes the value.
	Expression string `json:"expression"`
}

// DefinitionItem is one target.
type DefinitionItem struct {
	// name of the item.
	Name string `json:"name"`
	// when is an expression of type bool; without it the item is always there.
	// +optional
	When string `json:"when,omitempty"`
	// target is the object that is configured.
	Target DefinitionTarget `json:"target"`
	// object is an expression that makes the object, with every field that matters and no
	// other. It may leave out apiVersion, kind, and the name and namespace in metadata,
	// which follow from target; if it has them, they must match target.
	Object string `json:"object"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *DefinitionBlastRadius `json:"blastRadius,omitempty"`
	// impact is an expression that makes None, Low, Medium or High. It may name blast,
	// with pools, nodes, waves and reboot.
	Impact string `json:"impact"`
	// reason is an expression that says why, as text. It may name blast.
	Reason string `json:"reason"`
	// notes is an expression that makes a list of texts for reviewers. It may name blast.
	// All users who may read plans see them.
	// +optional
	Notes string `json:"notes,omitempty"`
	// waits are conditions that the target has to meet before the next item begins,
	// besides those that its kind has anyway.
	// +optional
	// +listType=atomic
	Waits []DefinitionWait `json:"waits,omitempty"`
}

// DefinitionTarget names an object.
type DefinitionTarget struct {
	// requirement is the name of a requirement with access Write.
	Requirement string `json:"requirement"`
	// namespace of the object, empty for none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// DefinitionBlastRadius says which nodes an item reaches.
type DefinitionBlastRadius struct {
	// pools is an expression that makes a list of MachineConfigPools, as facts have them.
	Pools string `json:"pools"`
	// reboot is an expression of type bool: whether their nodes reboot. Default: "false".
	// +optional
	Reboot string `json:"reboot,omitempty"`
}

// DefinitionWait is a condition that a plan waits for.
type DefinitionWait struct {
	// expression is of type bool. live is the target at that time, and facts are the facts
	// at that time. While the expression cannot be evaluated, for instance because there
	// is no status yet, the plan waits.
	Expression string `json:"expression"`
	// message says in words what the plan waits for.
	Message string `json:"message"`
	// messageExpression makes a message that says more, such as how many nodes are ready.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// Conditions of a definition.
const (
	// ConditionAccessGranted is true when the ServiceAccount of a definition has the
	// rights that it declares.
	ConditionAccessGranted = "AccessGranted"
)

// ConfigurationProfileDefinitionStatus has the server's findings about a definition.
type ConfigurationProfileDefinitionStatus struct {
	// observedGeneration is the generation of spec that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// digest of spec: a plan names the digest that it was computed from.
	// +optional
	Digest string `json:"digest,omitempty"`
	// serviceAccount under which plans of the profile are executed.
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
	// digest of its spec.
	Digest string `json:"digest"`
	// manifest names where the definition is stored as it was then.
	Manifest string `json:"manifest"`
	// requirements are the kinds that it declares, and its use of their objects.
	// +optional
	// +listType=atomic
	Requirements []DeclaredAccess `json:"requirements,omitempty"`
}

// DeclaredAccess is a definition's use of one kind.
type DeclaredAccess struct {
	// definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// access to its objects.
	Access DefinitionAccess `json:"access"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProfileEvaluation says what a plan of a profile of your own would do now: POST it, with
// options, to the subresource evaluate of the definition. Nothing is stored, and nothing is
// written. You see the targets that you may get and patch yourself.
type ProfileEvaluation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the question.
	// +optional
	Spec ProfileEvaluationSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status ProfileEvaluationStatus `json:"status,omitempty"`
}

// ProfileEvaluationSpec is the question.
type ProfileEvaluationSpec struct {
	// options as spec.options.values of a plan has them.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
}

// ProfileEvaluationStatus has the effect that a plan would have now.
type ProfileEvaluationStatus struct {
	// digest of the definition.
	Digest string `json:"digest"`
	// options with defaults.
	// +optional
	Options *JSONObject `json:"options,omitempty"`
	// missing says what the cluster lacks.
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
	// targetRef is the object that is configured.
	TargetRef TargetRef `json:"targetRef"`
	// impactSeverity is the disturbance by the item.
	ImpactSeverity ImpactSeverity `json:"impactSeverity"`
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
	// waits say in words what the plan waits for after the item.
	// +optional
	// +listType=atomic
	Waits []string `json:"waits,omitempty"`
	// object as it should be. It is set if you may get the target.
	// +optional
	Object *JSONObject `json:"object,omitempty"`
	// diff of the target as it is and as it would be, redacted.
	// +optional
	Diff string `json:"diff,omitempty"`
	// message says why there is no diff.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProfileOption documents an option of a profile.
type ProfileOption struct {
	// name of the option, with the names around it, such as limits.total.
	Name string `json:"name"`
	// type of its value.
	// +optional
	Type string `json:"type,omitempty"`
	// description says what it does, and to what effect.
	// +optional
	Description string `json:"description,omitempty"`
	// default is the value that applies without it, as JSON.
	// +optional
	Default string `json:"default,omitempty"`
	// allowed says which values it may have.
	// +optional
	Allowed string `json:"allowed,omitempty"`
}

// IsOwn tells whether a profile is one of those that users define: their names are those of
// objects, DNS labels, and the names of others have capitals.
func IsOwn(name ProfileName) bool { return len(validation.IsDNS1123Label(string(name))) == 0 }
