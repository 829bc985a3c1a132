package chartkind

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the resource of ChartKinds.
var Resource = schema.GroupVersionResource{Group: "charts.penstock.dev", Version: "v1alpha1", Resource: "chartkinds"}

// Kind is the kind ChartKind.
var Kind = Resource.GroupVersion().WithKind("ChartKind")

// Names on ChartKinds and on custom resources.
const (
	// Finalizer keeps a custom resource until what was installed for it is gone, and a
	// ChartKind until its custom resources are let go.
	Finalizer = "charts.penstock.dev/teardown"
	// PausedAnnotation, with the value "true" on a custom resource, stops changes to the installed
	// objects. Deletion continues.
	PausedAnnotation = "charts.penstock.dev/paused"
)

// Annotations of revisions that were made of a custom resource.
const (
	// ResourceAnnotation is the custom resource, as ChartKind/namespace/name, and UIDAnnotation
	// its uid.
	ResourceAnnotation = "charts.penstock.dev/resource"
	UIDAnnotation      = "charts.penstock.dev/resource-uid"
	// GenerationAnnotation is the generation of the custom resource that the revision was made
	// of first.
	GenerationAnnotation = "charts.penstock.dev/resource-generation"
	// MadeOfAnnotation is a digest of everything that the content depends on. As long as it
	// would be the same, nothing is rendered.
	MadeOfAnnotation = "charts.penstock.dev/made-of"
	// SettingsAnnotation is a digest of what the content depends on in the ChartKind.
	SettingsAnnotation = "charts.penstock.dev/kind-settings"
	// NotesAnnotation has the content of the chart's NOTES.txt, cut to MaxNotes bytes.
	NotesAnnotation = "charts.penstock.dev/notes"
)

// Notes returns the annotations in which Penstock records the progress of a custom resource. Clients
// must not set or change them.
func Notes() []string {
	return []string{ResourceAnnotation, UIDAnnotation, GenerationAnnotation, MadeOfAnnotation, SettingsAnnotation, NotesAnnotation}
}

// Policies of upgrades.
const (
	// ApprovalAutomatic rolls every revision out.
	ApprovalAutomatic = "Automatic"
	// ApprovalManual makes every revision but the first Paused, for somebody to resume it.
	ApprovalManual = "Manual"
	// ApprovalReviewed makes a revision Paused when its diff has a note that holds, and its chart or
	// ChartKind changed, or no change of the custom resource asked for it.
	ApprovalReviewed = "Reviewed"
)

// ChartKind names the chart that installs the custom resources of one kind.
type ChartKind struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty,omitzero"`
}

// Spec is the part that users write.
type Spec struct {
	// Resource is the kind of the custom resources. Immutable.
	Resource ResourceKind `json:"resource"`
	Chart    Chart        `json:"chart"`
	// ServiceAccount is in whose name custom resources are read, their status is written and
	// revisions are made.
	ServiceAccount ServiceAccount `json:"serviceAccount"`
	// Namespace is that of the objects; empty is the namespace of the custom resource.
	Namespace string `json:"namespace,omitempty"`
	// Extension is an expression for the name of the extension that a custom resource becomes;
	// empty is kind, namespace and name with hyphens between them, and a digest.
	Extension string `json:"extension,omitempty"`
	// Values are those of the chart, made of the custom resource.
	Values []Value `json:"values,omitempty"`
	// Overrides are values of the chart that count more than Values.
	Overrides map[string]any `json:"overrides,omitempty"`
	// GeneratedSecrets are the names of Secrets whose values the chart makes by chance, once.
	GeneratedSecrets []string `json:"generatedSecrets,omitempty"`
	Inputs           []Input  `json:"inputs,omitempty"`
	// UpgradeApproval is Automatic, the default, Reviewed or Manual.
	UpgradeApproval string `json:"upgradeApproval,omitempty"`
	// HoldOn lists the reasons of the notes that hold with Reviewed; empty is the default list of
	// package note.
	HoldOn []string `json:"holdOn,omitempty"`
	// ProgressDeadlineMinutes limits the time of a rollout, after which it counts as failed; 0 sets no
	// deadline.
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`
}

// ResourceKind is a kind of custom resources.
type ResourceKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Plural is that of the CustomResourceDefinition; empty is the kind in lower case with s.
	Plural string `json:"plural,omitempty"`
}

// GVK is the kind.
func (r ResourceKind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GVR is the resource.
func (r ResourceKind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: cmp.Or(r.Plural, strings.ToLower(r.Kind)+"s")}
}

// Chart is a Helm chart in a registry.
type Chart struct {
	// Ref is an image reference with a tag or a digest. A tag is read when the spec of the
	// ChartKind changes, and when Penstock starts.
	Ref string `json:"ref"`
}

// ServiceAccount names one.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (a ServiceAccount) String() string { return a.Namespace + "/" + a.Name }

// Value is one value of the chart. It is From or Expression; nothing is set when there is no
// such field, or the expression is null.
type Value struct {
	// To is the path in the values: names with dots between them.
	To string `json:"to"`
	// From is the path in the custom resource.
	From string `json:"from,omitempty"`
	// Expression is in CEL, of object, the custom resource without its status, and of inputs.
	Expression string `json:"expression,omitempty"`
}

// Input is something besides the custom resource by which its revision is made anew: one object
// that the custom resource names, or all objects of a kind in its namespace.
type Input struct {
	// Name is that in inputs, for expressions.
	Name    string `json:"name"`
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Plural  string `json:"plural,omitempty"`
	// NameFrom is the path in the custom resource of the name of one object. Its
	// resourceVersion counts, and its content is not read. Without it, the names of all
	// objects of the kind count.
	NameFrom string `json:"nameFrom,omitempty"`
}

// GVR is the resource of an input.
func (i Input) GVR() schema.GroupVersionResource {
	return ResourceKind{Group: i.Group, Version: i.Version, Kind: i.Kind, Plural: i.Plural}.GVR()
}

// Status reports whether the kind is served.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Chart is the chart of the custom resources.
	Chart *ChartStatus `json:"chart,omitempty"`
}

// ChartStatus is a chart that was pulled.
type ChartStatus struct {
	// Reference has the digest.
	Reference string `json:"reference"`
}

// ConditionAccepted is True when custom resources of the kind are installed.
const ConditionAccepted = "Accepted"

// From reads a ChartKind.
func From(object *unstructured.Unstructured) (*ChartKind, error) {
	kind := &ChartKind{}
	// By JSON, so that numbers in overrides are those that everybody reads.
	content, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(content, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ChartKind %s: %w", object.GetName(), err)
	}
	return kind, nil
}

// StatusOf returns the status as fields, for a write to the subresource.
func StatusOf(name string, status Status) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ChartKind %s: %w", name, err)
	}
	return fields, nil
}
