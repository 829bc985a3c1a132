package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationProfileDefinition is a profile of your own: what it needs of the cluster,
// its options, and the objects that it wants, in CEL. A ConfigurationPlan with its name in
// spec.profile is computed from it, and reviewed, approved and executed as any other.
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

// ConfigurationProfileDefinitionSpec is a profile. Expressions are in CEL, with the
// functions that Kubernetes has. They name: facts, what the cluster has of each
// requirement; options, with defaults; variables; and in items live, the target as it is,
// or null.
type ConfigurationProfileDefinitionSpec struct {
	// Description says in one sentence what the profile is for.
	Description string
	// Requirements are the CustomResourceDefinitions that the profile looks at, and what
	// it does with their objects. The profile can have no other.
	Requirements []DefinitionRequirement
	// Prerequisites are further conditions on the cluster. While one is false, plans wait in
	// PrerequisiteFailed, and show its message.
	Prerequisites []DefinitionCheck
	// Options is the schema of spec.options.values of plans: an OpenAPI v3 schema of type
	// object, as CustomResourceDefinitions have it, with defaults and descriptions.
	// Without it there are no options.
	Options *JSONObject
	// Validations are expressions over several options that must be true.
	Validations []DefinitionCheck
	// Variables are expressions with names, such as variables.pools. They may name
	// variables before them.
	Variables []DefinitionVariable
	// Items are the targets as they should be, in the order in which they are
	// configured.
	Items []DefinitionItem
}

// DefinitionAccess is a profile's use of the objects of a requirement.
type DefinitionAccess string

const (
	// AccessSchema looks at the definition only.
	AccessSchema DefinitionAccess = "Schema"
	// AccessRead reads objects: get, list and watch.
	AccessRead DefinitionAccess = "Read"
	// AccessWrite reads and configures objects: create, patch and delete besides.
	AccessWrite DefinitionAccess = "Write"
)

// DefinitionRequirement is a CustomResourceDefinition that a profile looks at.
type DefinitionRequirement struct {
	// Name under which expressions find it: facts.NAME. A CEL identifier.
	Name string
	// Definition is the name of the CustomResourceDefinition, such as
	// kubeletconfigs.machineconfiguration.openshift.io.
	Definition string
	// Kind that it defines, such as KubeletConfig.
	Kind string
	// Access is the profile's use of the objects: Schema, Read or Write. Its ServiceAccount gets
	// the verbs for that, and the user who writes the definition must have them in the whole
	// cluster. Default: Schema.
	Access DefinitionAccess
	// Install says what to install where the definition is missing.
	Install string
	// Optional tells that the profile does without it.
	Optional bool
	// Fields of the schema that expressions ask for: facts.NAME.fields[PATH].
	Fields []DefinitionField
}

// DefinitionField is a field of a schema.
type DefinitionField struct {
	// Path such as spec.profiles[]; "[]" stands for the items of a list.
	Path string
	// Optional tells that the profile does without it. Plans wait in PrerequisiteFailed
	// for any other.
	Optional bool
}

// DefinitionCheck is an expression that must be true.
type DefinitionCheck struct {
	// Expression is of type bool.
	Expression string
	// Message says in words what is missing.
	Message string
}

// DefinitionVariable is an expression with a name.
type DefinitionVariable struct {
	// Name is a CEL identifier.
	Name string
	// Expression makes the value.
	Expression string
}

// DefinitionItem is one target.
type DefinitionItem struct {
	// Name of the item.
	Name string
	// When is an expression of type bool; without it the item is always there.
	When string
	// Target is the object that is configured.
	Target DefinitionTarget
	// Object is an expression that makes the object, with every field that matters and no
	// other. It may leave out apiVersion, kind, and the name and namespace in metadata,
	// which follow from target; where it has them they must be those.
	Object string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *DefinitionBlastRadius
	// Impact is an expression that makes None, Low, Medium or High. It may name blast,
	// with pools, nodes, waves and reboot.
	Impact string
	// Reason is an expression that says why, as text. It may name blast.
	Reason string
	// Notes is an expression that makes a list of texts for reviewers. It may name blast.
	// All readers of plans see them.
	Notes string
	// Waits are conditions on the target before the next item begins, besides those of its kind.
	Waits []DefinitionWait
}

// DefinitionTarget names an object.
type DefinitionTarget struct {
	// Requirement is the name of a requirement with access Write.
	Requirement string
	// Namespace of the object, empty for none.
	Namespace string
	// Name of the object.
	Name string
}

// DefinitionBlastRadius says which nodes an item reaches.
type DefinitionBlastRadius struct {
	// Pools is an expression that makes a list of MachineConfigPools, as facts have them.
	Pools string
	// Reboot is an expression of type bool: whether their nodes reboot. Default: "false".
	Reboot string
}

// DefinitionWait is one condition on the target.
type DefinitionWait struct {
	// Expression is of type bool. Live is the target as it is by then, facts are those of
	// that time. While it cannot be evaluated, as on a status that is not there yet, it is
	// waited for.
	Expression string
	// Message says in words what is waited for.
	Message string
	// MessageExpression makes a message that says more, such as how many nodes are ready.
	MessageExpression string
}

// ConfigurationProfileDefinitionStatus has the server's findings about a definition.
type ConfigurationProfileDefinitionStatus struct {
	// ObservedGeneration is the generation of spec that status speaks of.
	ObservedGeneration int64
	// Digest of spec: a plan names the one that it was computed from.
	Digest string
	// ServiceAccount under which plans of the profile are executed.
	ServiceAccount string
	// Conditions sum the definition up.
	Conditions []metav1.Condition
}

// PlanDefinition is the definition that a plan was computed from. An edit of it changes
// nothing of the plan.
type PlanDefinition struct {
	// Digest of its spec.
	Digest string
	// Manifest names where it is stored as it was.
	Manifest string
	// Requirements are the kinds that it declares, and its use of their objects.
	Requirements []DeclaredAccess
}

// DeclaredAccess is a definition's use of one kind.
type DeclaredAccess struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string
	// Access to its objects.
	Access DefinitionAccess
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProfileEvaluation says what a plan of a profile of your own would do now: POST it, with
// options, to the subresource evaluate of the definition. Nothing is stored, and nothing is
// written. You see the targets that you may get and patch yourself.
type ProfileEvaluation struct {
	metav1.TypeMeta
	// Metadata may be left out.
	metav1.ObjectMeta
	// Spec is the question.
	Spec ProfileEvaluationSpec
	// Status is the answer.
	Status ProfileEvaluationStatus
}

// ProfileEvaluationSpec is the question.
type ProfileEvaluationSpec struct {
	// Options as spec.options.values of a plan has them.
	Options *JSONObject
}

// ProfileEvaluationStatus has the effect that a plan would have now.
type ProfileEvaluationStatus struct {
	// Digest of the definition.
	Digest string
	// Options with defaults.
	Options *JSONObject
	// Missing says what the cluster lacks.
	Missing string
	// ImpactSeverity is the highest of the items.
	ImpactSeverity ImpactSeverity
	// Items are the effects of a plan, one for each target.
	Items []EvaluatedItem
}

// EvaluatedItem is the effect of a plan on one target now.
type EvaluatedItem struct {
	// Name of the item.
	Name string
	// TargetRef is the object that is configured.
	TargetRef TargetRef
	// ImpactSeverity is the disturbance by the action.
	ImpactSeverity ImpactSeverity
	// ImpactReason says why.
	ImpactReason string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *BlastRadius
	// Notes are remarks for reviewers.
	Notes []string
	// Waits say in words what is waited for after it.
	Waits []string
	// Object as it should be. It is there if you may get the target.
	Object *JSONObject
	// Diff of the target as it is and as it would be, redacted.
	Diff string
	// Message says why there is no diff.
	Message string
}

// JSONObject is any JSON object, kept as it was sent.
type JSONObject struct {
	// Raw is the object in JSON.
	Raw []byte
}

// IsOwn tells whether a profile is one of those that users define: their names are those of
// objects, DNS labels, and the names of others have capitals.
func IsOwn(name ProfileName) bool { return len(validation.IsDNS1123Label(string(name))) == 0 }
