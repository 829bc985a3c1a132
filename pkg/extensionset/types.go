package extensionset

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/penstock-project/penstock/pkg/extension/author"
)

// Resource is the resource of ClusterExtensionSets.
var Resource = schema.GroupVersionResource{Group: "penstock.dev", Version: "v1alpha1", Resource: "clusterextensionsets"}

// Kind is the kind ClusterExtensionSet.
var Kind = Resource.GroupVersion().WithKind("ClusterExtensionSet")

// ClusterLabel is on each Secret with a kubeconfig that sets may select, in the namespace of
// Penstock. Its value has no meaning.
const ClusterLabel = "penstock.dev/cluster"

// Approvals of waves.
const (
	// ApprovalAutomatic: the approval of the rollout is that of the wave.
	ApprovalAutomatic = "Automatic"
	// ApprovalRequired: the wave needs an approval after the earlier waves.
	ApprovalRequired = "Required"
)

// Policies for ClusterExtensions that the set does not ask for any more.
const (
	// PolicyRetain: they stay.
	PolicyRetain = "Retain"
	// PolicyDelete: they are deleted.
	PolicyDelete = "Delete"
)

// Defaults of a set.
const (
	DefaultDeadlineSeconds = 1800
	DefaultHistoryLimit    = 10
)

// Set is a ClusterExtensionSet.
type Set struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty,omitzero"`
}

// Spec is the request of a user.
type Spec struct {
	// ClusterSelector chooses clusters by the labels of their Secrets.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
	Template        Template             `json:"template"`
	// Overrides change the template for some clusters, one after the other.
	Overrides []Override `json:"overrides,omitempty"`
	Strategy  Strategy   `json:"strategy,omitempty,omitzero"`
	// RemovalPolicy is PolicyRetain, the default, or PolicyDelete: for the ClusterExtension of a
	// cluster that loses the labels.
	RemovalPolicy string `json:"removalPolicy,omitempty"`
	// TeardownPolicy is PolicyRetain, the default, or PolicyDelete: for the ClusterExtensions of a
	// set that is deleted.
	TeardownPolicy string `json:"teardownPolicy,omitempty"`
	// Paused lets no cluster begin.
	Paused bool `json:"paused,omitempty"`
	// RolloutHistoryLimit is the number of ended rollouts that are kept.
	RolloutHistoryLimit *int32 `json:"rolloutHistoryLimit,omitempty"`
}

// Template is a ClusterExtension without a name and a target.
type Template struct {
	Metadata TemplateMetadata `json:"metadata,omitempty,omitzero"`
	// Spec is that of a ClusterExtension. Its source may be a range of versions: each rollout
	// has one version.
	Spec map[string]any `json:"spec"`
}

// TemplateMetadata are labels and annotations of each ClusterExtension.
type TemplateMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Override changes the ClusterExtension of the clusters that ClusterSelector or ClusterNames names.
type Override struct {
	// ClusterSelector chooses clusters by the labels of their Secrets; nil for ClusterNames.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterNames are names of Secrets.
	ClusterNames []string `json:"clusterNames,omitempty"`
	// Config is merged into config.inline of the template, as a JSON merge patch (RFC 7386).
	Config map[string]any `json:"config,omitempty"`
	// Version replaces the version of the catalog source of the template.
	Version string `json:"version,omitempty"`
}

// Strategy determines the order in which a change reaches the clusters.
type Strategy struct {
	// Waves in their order; without any there is one, of all clusters.
	Waves []Wave `json:"waves,omitempty"`
	// DeadlineSeconds limits the time in which a cluster must become healthy; 0 is the default.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
}

// Wave is a group of clusters that later waves wait for.
type Wave struct {
	Name string `json:"name"`
	// ClusterSelector chooses clusters of the set. The first wave that selects a cluster has it.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty,omitzero"`
	// MaxUnavailable is a number or a percentage of the wave; nil is 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxFailures    int32               `json:"maxFailures,omitempty"`
	// MaxUnreachable is a number or a percentage of the wave; nil is 10%.
	MaxUnreachable *intstr.IntOrString `json:"maxUnreachable,omitempty"`
	SoakSeconds    int64               `json:"soakSeconds,omitempty"`
	// Approval is ApprovalAutomatic, the default, or ApprovalRequired.
	Approval string `json:"approval,omitempty"`
	// Window is when clusters of the wave may begin; nil is always.
	Window *Window `json:"window,omitempty"`
}

// Window is a recurring time.
type Window struct {
	// Schedule is when the window opens, as cron has it, read in TimeZone.
	Schedule string `json:"schedule"`
	// TimeZone is a name of the IANA database; empty is UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Duration is how long it is open each time.
	Duration metav1.Duration `json:"duration"`
}

// Status is the progress of a set. Its counts add up to Clusters.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters that the set selects.
	Clusters int32 `json:"clusters"`
	// Updated have the newest approved content.
	Updated int32 `json:"updated"`
	// Rollout is the newest one.
	Rollout string `json:"rollout,omitempty"`
	Phase   string `json:"phase,omitempty"`
	// Exceptions are clusters that the set cannot serve, at most MaxExceptions.
	Exceptions []Exception        `json:"exceptions,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

const (
	// MaxExceptions bounds the exceptions of a status.
	MaxExceptions = 50
	// MaxClusters bounds the clusters of a set.
	MaxClusters = 1000
)

// Exception is a cluster that the set does not serve, and the reason.
type Exception struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Author returns the subject of a set's author: the spec.
func Author() author.Subject {
	return author.Subject{Kind: Kind, Spec: true, Annotation: func(string) bool { return false }}
}

// From reads a ClusterExtensionSet.
func From(object *unstructured.Unstructured) (*Set, error) {
	read := &Set{}
	content, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(content, read)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtensionSet %s: %w", object.GetName(), err)
	}
	if read.Spec.Strategy.DeadlineSeconds == 0 {
		read.Spec.Strategy.DeadlineSeconds = DefaultDeadlineSeconds
	}
	for _, wave := range read.Spec.Strategy.Waves {
		if wave.Window != nil && wave.Window.TimeZone == "" {
			wave.Window.TimeZone = "UTC"
		}
	}
	if len(read.Spec.Strategy.Waves) == 0 {
		read.Spec.Strategy.Waves = []Wave{{Name: "all"}}
	}
	return read, nil
}

// WithStatus returns a copy of an object with another status, for a write to its subresource.
func WithStatus(object *unstructured.Unstructured, status Status) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ClusterExtensionSet %s: %w", object.GetName(), err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = fields
	return changed, nil
}
