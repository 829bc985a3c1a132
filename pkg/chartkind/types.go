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

// Kind is the kind of ChartKinds.
var Kind = Resource.GroupVersion().WithKind("ChartKind")

// Names on ChartKinds and custom resources.
const (
	// Finalizer keeps a custom resource until its installed objects are deleted. It keeps a
	// ChartKind until its custom resources no longer have the finalizer.
	Finalizer = "charts.penstock.dev/teardown"
	// PausedAnnotation with the value "true" on a custom resource stops changes of the installed
	// objects. Deletion continues.
	PausedAnnotation = "charts.penstock.dev/paused"
)

// Annotations of revisions that were created from a custom resource.
const (
	// ResourceAnnotation identifies the custom resource as ChartKind/namespace/name. UIDAnnotation
	// has its uid.
	ResourceAnnotation = "charts.penstock.dev/resource"
	UIDAnnotation      = "charts.penstock.dev/resource-uid"
	// GenerationAnnotation is the first generation of the custom resource that had the revision's
	// content.
	GenerationAnnotation = "charts.penstock.dev/resource-generation"
	// MadeOfAnnotation is the digest of all inputs of the content. While it is unchanged, the chart
	// is not rendered.
	MadeOfAnnotation = "charts.penstock.dev/made-of"
	// SettingsAnnotation is the digest of the ChartKind's settings that affect the content.
	SettingsAnnotation = "charts.penstock.dev/kind-settings"
	// NotesAnnotation has the text of the chart's NOTES.txt, truncated to MaxNotes bytes.
	NotesAnnotation = "charts.penstock.dev/notes"
)

// Notes returns the annotations in which Penstock records the progress of a custom resource.
// Clients must not set or change them.
func Notes() []string {
	return []string{ResourceAnnotation, UIDAnnotation, GenerationAnnotation, MadeOfAnnotation, SettingsAnnotation, NotesAnnotation}
}

const (
	// ApprovalAutomatic rolls out every revision.
	ApprovalAutomatic = "Automatic"
	// ApprovalManual creates every revision except the first as Paused. A user resumes it.
	ApprovalManual = "Manual"
	// ApprovalReviewed creates a revision as Paused when its diff has a note that holds, and the
	// revision results from a changed chart or ChartKind, or from no change of the custom resource.
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
	// ServiceAccount is the identity with which Penstock reads custom resources, writes their
	// status and creates revisions.
	ServiceAccount ServiceAccount `json:"serviceAccount"`
	// Namespace of the objects; empty for the namespace of the custom resource.
	Namespace string `json:"namespace,omitempty"`
	// Extension is a CEL expression for the name of the extension. When empty, the name has kind,
	// namespace and name, joined by hyphens, and a digest.
	Extension string `json:"extension,omitempty"`
	// Values computes values of the chart from the custom resource.
	Values []Value `json:"values,omitempty"`
	// Overrides are values of the chart that win over Values.
	Overrides map[string]any `json:"overrides,omitempty"`
	// GeneratedSecrets are the names of Secrets for which the chart generates random values once.
	GeneratedSecrets []string `json:"generatedSecrets,omitempty"`
	Inputs           []Input  `json:"inputs,omitempty"`
	// UpgradeApproval is Automatic (the default), Reviewed or Manual.
	UpgradeApproval string `json:"upgradeApproval,omitempty"`
	// HoldOn lists the reasons of notes that hold an upgrade with Reviewed; empty for the default
	// list of package note.
	HoldOn []string `json:"holdOn,omitempty"`
	// ProgressDeadlineMinutes limits the duration of a rollout. Later the rollout counts as failed;
	// 0 sets no deadline.
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`
}

// ResourceKind is a kind of custom resources.
type ResourceKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Plural is the plural of the CustomResourceDefinition; empty for the kind in lower case plus
	// "s".
	Plural string `json:"plural,omitempty"`
}

// GVK returns the kind.
func (r ResourceKind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GVR returns the resource.
func (r ResourceKind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: cmp.Or(r.Plural, strings.ToLower(r.Kind)+"s")}
}

// Chart is a Helm chart in a registry.
type Chart struct {
	// Ref is an image reference with a tag or a digest. Penstock resolves a tag when it starts, and
	// when the spec of the ChartKind changes.
	Ref string `json:"ref"`
}

// ServiceAccount names a ServiceAccount.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (a ServiceAccount) String() string { return a.Namespace + "/" + a.Name }

// Value sets one value of the chart, by From or by Expression. If the field does not exist or the
// expression is null, it sets nothing.
type Value struct {
	// To is the path in the values: names separated by dots.
	To string `json:"to"`
	// From is the path in the custom resource.
	From string `json:"from,omitempty"`
	// Expression is CEL. Its variables are object, the custom resource without its status, and
	// inputs.
	Expression string `json:"expression,omitempty"`
}

// Input is an input of a revision besides the custom resource: one object that the custom resource
// names, or all objects of a kind in its namespace. When it changes, a new revision is created.
type Input struct {
	// Name is the name in the variable inputs.
	Name    string `json:"name"`
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Plural  string `json:"plural,omitempty"`
	// NameFrom is the path in the custom resource of the name of one object. Only the object's
	// resourceVersion counts; its content is not read. Without NameFrom, the names of all objects
	// of the kind count.
	NameFrom string `json:"nameFrom,omitempty"`
}

// GVR returns the resource of an input.
func (i Input) GVR() schema.GroupVersionResource {
	return ResourceKind{Group: i.Group, Version: i.Version, Kind: i.Kind, Plural: i.Plural}.GVR()
}

// Status reports whether the kind is served.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Chart is the chart of the custom resources.
	Chart *ChartStatus `json:"chart,omitempty"`
}

// ChartStatus describes the pulled chart.
type ChartStatus struct {
	// Reference is the reference with the digest.
	Reference string `json:"reference"`
}

// ConditionAccepted is True when Penstock installs the chart for custom resources of the kind.
const ConditionAccepted = "Accepted"

// From decodes a ChartKind.
func From(object *unstructured.Unstructured) (*ChartKind, error) {
	kind := &ChartKind{}
	// The round trip through JSON decodes numbers in overrides as other clients do.
	content, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(content, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ChartKind %s: %w", object.GetName(), err)
	}
	return kind, nil
}

// StatusOf encodes the status for a write to the subresource.
func StatusOf(name string, status Status) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ChartKind %s: %w", name, err)
	}
	return fields, nil
}
