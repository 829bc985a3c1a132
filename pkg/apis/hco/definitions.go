package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinition is a user-defined profile: its requirements, its options, and the
// desired objects, in CEL. A ConfigurationPlan with its name in spec.profile is computed from it,
// and is reviewed, approved and executed like every plan.
type ConfigurationProfileDefinition struct {
	metav1.TypeMeta
	// Metadata is the standard object metadata. The name is a DNS label.
	metav1.ObjectMeta
	// Spec is the profile.
	Spec ConfigurationProfileDefinitionSpec
	// Status has the server's findings about the definition.
	Status ConfigurationProfileDefinitionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinitionList is a list of definitions.
type ConfigurationProfileDefinitionList struct {
	metav1.TypeMeta
	// Metadata is the standard list metadata.
	metav1.ListMeta
	// Items are the definitions.
	Items []ConfigurationProfileDefinition
}

// ConfigurationProfileDefinitionSpec is a profile. Expressions are in CEL, with the functions of
// Kubernetes. They can use four variables: facts, the state of each requirement in the cluster;
// options, with defaults; variables; and, in items, live, the target in its current state, or null
// if it does not exist.
type ConfigurationProfileDefinitionSpec struct {
	// Description is the purpose of the profile, in one sentence.
	Description string
	// Requirements are the CustomResourceDefinitions that the profile uses, and its access to their
	// objects. The profile cannot use other kinds.
	Requirements []DefinitionRequirement
	// Prerequisites are further conditions on the cluster. While one of them is false, plans wait
	// in PrerequisiteFailed and show its message.
	Prerequisites []DefinitionCheck
	// Options is the schema of spec.options.values of plans: an OpenAPI v3 schema of type object
	// with defaults and descriptions, as in CustomResourceDefinitions. Without it, the profile has
	// no options.
	Options *JSONObject
	// Validations are expressions about the options that must be true.
	Validations []DefinitionCheck
	// Variables are named expressions, used as variables.NAME. They may use earlier variables.
	Variables []DefinitionVariable
	// Items are the targets in their desired state, in the order of execution.
	Items []DefinitionItem
}

// DefinitionAccess is a profile's access to the objects of a requirement.
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
	// Name of the requirement in expressions: facts.NAME. It must be a CEL identifier.
	Name string
	// Definition is the name of the CustomResourceDefinition, such as
	// kubeletconfigs.machineconfiguration.openshift.io.
	Definition string
	// Kind that the CustomResourceDefinition defines, such as KubeletConfig.
	Kind string
	// Access is the profile's access to the objects: Schema, Read or Write. The ServiceAccount of
	// the profile gets the verbs for it. Users who write the definition must have these verbs in
	// the whole cluster. Default: Schema.
	Access DefinitionAccess
	// Install names the component to install if the CustomResourceDefinition is missing.
	Install string
	// Optional is true if the profile works without the CustomResourceDefinition. Default: false.
	Optional bool
	// Fields of the schema that expressions check: facts.NAME.fields[PATH].
	Fields []DefinitionField
}

// DefinitionField is a field of a schema.
type DefinitionField struct {
	// Path such as spec.profiles[]; "[]" means the items of a list.
	Path string
	// Optional is true if the profile works without the field. While a field that is not optional
	// is missing, plans wait in PrerequisiteFailed. Default: false.
	Optional bool
}

// DefinitionCheck is an expression that must be true.
type DefinitionCheck struct {
	// Expression must return a bool.
	Expression string
	// Message explains to a person what is missing.
	Message string
}

// DefinitionVariable is a named expression.
type DefinitionVariable struct {
	// Name of the variable. It must be a CEL identifier.
	Name string
	// Expression that returns the value.
	Expression string
}

// DefinitionItem is one target.
type DefinitionItem struct {
	// Name of the item.
	Name string
	// When is an expression that returns a bool. The plan has the item if it is true. Default:
	// true.
	When string
	// Target is the object to configure.
	Target DefinitionTarget
	// Object is an expression that returns the object, with only the fields to configure. It may
	// leave out apiVersion, kind, metadata.name and metadata.namespace, which follow from target.
	// If it has them, they must match target.
	Object string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *DefinitionBlastRadius
	// Impact is an expression that returns None, Low, Medium or High. It may use blast, with pools,
	// nodes, waves and reboot.
	Impact string
	// Reason is an expression that returns the reason of the impact, as text. It may use blast.
	Reason string
	// Notes is an expression that returns a list of texts for reviewers. It may use blast. All users
	// who can read plans see them.
	Notes string
	// Waits are conditions that the target must meet before the next item begins. The built-in
	// conditions of its kind still apply.
	Waits []DefinitionWait
}

// DefinitionTarget names an object.
type DefinitionTarget struct {
	// Requirement is the name of a requirement with access Write.
	Requirement string
	// Namespace of the object; empty for cluster-scoped objects.
	Namespace string
	// Name of the object.
	Name string
}

// DefinitionBlastRadius names the nodes that an item affects.
type DefinitionBlastRadius struct {
	// Pools is an expression that returns a list of MachineConfigPools from facts.
	Pools string
	// Reboot is an expression that returns a bool: true if the nodes of the pools reboot. Default:
	// "false".
	Reboot string
}

// DefinitionWait is a condition that a plan waits for.
type DefinitionWait struct {
	// Expression must return a bool. It uses the current state of live and of facts. While it
	// cannot be evaluated, for instance because the target has no status yet, the plan waits.
	Expression string
	// Message describes what the plan waits for.
	Message string
	// MessageExpression is an expression that returns a more detailed message, such as the number
	// of ready nodes.
	MessageExpression string
}

// ConfigurationProfileDefinitionStatus has the server's findings about a definition.
type ConfigurationProfileDefinitionStatus struct {
	// ObservedGeneration is the generation of spec that status describes.
	ObservedGeneration int64
	// Digest of spec. A plan names the digest that it was computed from.
	Digest string
	// ServiceAccount that executes plans of the profile.
	ServiceAccount string
	// Conditions summarize the definition.
	Conditions []metav1.Condition
}

// PlanDefinition is the definition that a plan was computed from. Later changes of the definition
// do not change the plan.
type PlanDefinition struct {
	// Digest of the definition's spec.
	Digest string
	// Manifest is the name of the stored copy of the definition.
	Manifest string
	// Requirements are the kinds that the definition declares, and its access to their objects.
	Requirements []DeclaredAccess
}

// DeclaredAccess is a definition's access to one kind.
type DeclaredAccess struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string
	// Access to its objects.
	Access DefinitionAccess
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProfileEvaluation returns the effect that a plan of a user-defined profile would have now. POST
// it, with options, to the subresource evaluate of the definition. The server stores nothing and
// writes nothing. The answer shows the targets that you can get and patch.
type ProfileEvaluation struct {
	metav1.TypeMeta
	// Metadata is optional.
	metav1.ObjectMeta
	// Spec is the request.
	Spec ProfileEvaluationSpec
	// Status is the answer.
	Status ProfileEvaluationStatus
}

// ProfileEvaluationSpec is the request.
type ProfileEvaluationSpec struct {
	// Options in the form of spec.options.values of a plan.
	Options *JSONObject
}

// ProfileEvaluationStatus is the effect that a plan would have now.
type ProfileEvaluationStatus struct {
	// Digest of the definition.
	Digest string
	// Options of the request, with defaults filled in.
	Options *JSONObject
	// Missing names what the cluster lacks.
	Missing string
	// ImpactSeverity is the highest severity of the items.
	ImpactSeverity ImpactSeverity
	// Items are the effects of a plan, one for each target.
	Items []EvaluatedItem
}

// EvaluatedItem is the effect of a plan on one target now.
type EvaluatedItem struct {
	// Name of the item.
	Name string
	// TargetRef is the object to configure.
	TargetRef TargetRef
	// ImpactSeverity is the disturbance that the item causes.
	ImpactSeverity ImpactSeverity
	// ImpactReason is the reason of impactSeverity, for a person.
	ImpactReason string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *BlastRadius
	// Notes are remarks for reviewers.
	Notes []string
	// Waits are the messages of the conditions that the plan waits for after the item.
	Waits []string
	// Object in its desired state. It is set if you can get the target.
	Object *JSONObject
	// Diff between the current and the desired state of the target, redacted.
	Diff string
	// Message is the reason why there is no diff.
	Message string
}

// JSONObject is any JSON object, kept as the client sent it.
type JSONObject struct {
	// Raw is the object in JSON.
	Raw []byte
}

// IsOwn reports whether a profile is user-defined. Names of user-defined profiles are DNS labels.
// Names of built-in profiles have capitals.
func IsOwn(name ProfileName) bool { return len(validation.IsDNS1123Label(string(name))) == 0 }
