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

// Kind is the kind of ClusterExtensionSets.
var Kind = Resource.GroupVersion().WithKind("ClusterExtensionSet")

// ClusterLabel marks the Secrets with a kubeconfig, in Penstock's namespace, that sets may select.
// Its value has no meaning.
const ClusterLabel = "penstock.dev/cluster"

// Approvals of waves.
const (
	// ApprovalAutomatic: the approval of the rollout also approves the wave.
	ApprovalAutomatic = "Automatic"
	// ApprovalRequired: the wave needs a separate approval after the earlier waves.
	ApprovalRequired = "Required"
)

// Policies for ClusterExtensions that the set no longer requests.
const (
	// PolicyRetain keeps them.
	PolicyRetain = "Retain"
	// PolicyDelete deletes them.
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
	// Overrides change the template for some clusters, in order.
	Overrides []Override `json:"overrides,omitempty"`
	Strategy  Strategy   `json:"strategy,omitempty,omitzero"`
	// RemovalPolicy applies to the ClusterExtension of a cluster that the set no longer selects. It
	// is PolicyRetain, the default, or PolicyDelete.
	RemovalPolicy string `json:"removalPolicy,omitempty"`
	// TeardownPolicy applies to the ClusterExtensions of a deleted set. It is PolicyRetain, the
	// default, or PolicyDelete.
	TeardownPolicy string `json:"teardownPolicy,omitempty"`
	// Paused prevents further clusters from beginning.
	Paused bool `json:"paused,omitempty"`
	// RolloutHistoryLimit is the number of ended rollouts to keep.
	RolloutHistoryLimit *int32 `json:"rolloutHistoryLimit,omitempty"`
}

// Template is a ClusterExtension without a name and a target.
type Template struct {
	Metadata TemplateMetadata `json:"metadata,omitempty,omitzero"`
	// Spec is the spec of a ClusterExtension. Its source may be a version range. Each rollout has
	// one version of the range.
	Spec map[string]any `json:"spec"`
}

// TemplateMetadata holds the labels and annotations of each ClusterExtension.
type TemplateMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Override changes the ClusterExtensions of the clusters that ClusterSelector or ClusterNames
// select.
type Override struct {
	// ClusterSelector selects clusters by the labels of their Secrets; nil to use ClusterNames.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterNames lists names of Secrets.
	ClusterNames []string `json:"clusterNames,omitempty"`
	// Config is merged into config.inline of the template, as a JSON merge patch (RFC 7386).
	Config map[string]any `json:"config,omitempty"`
	// Version replaces the version of the template's catalog source.
	Version string `json:"version,omitempty"`
}

// Strategy determines the order in which a change reaches the clusters.
type Strategy struct {
	// Waves lists the waves in order. Without waves, one wave has all clusters.
	Waves []Wave `json:"waves,omitempty"`
	// DeadlineSeconds limits the time in which a cluster must become healthy; 0 is the default.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
}

// Wave is a group of clusters. Later waves wait for it.
type Wave struct {
	Name string `json:"name"`
	// ClusterSelector selects clusters of the set. A cluster belongs to the first wave that selects
	// it.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty,omitzero"`
	// MaxUnavailable is a number, or a percentage of the wave; the default is 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxFailures    int32               `json:"maxFailures,omitempty"`
	// MaxUnreachable is a number, or a percentage of the wave; the default is 10%.
	MaxUnreachable *intstr.IntOrString `json:"maxUnreachable,omitempty"`
	SoakSeconds    int64               `json:"soakSeconds,omitempty"`
	// Approval is ApprovalAutomatic, the default, or ApprovalRequired.
	Approval string `json:"approval,omitempty"`
	// Window limits the time in which clusters of the wave may begin; nil means always.
	Window *Window `json:"window,omitempty"`
}

// Window is a recurring time.
type Window struct {
	// Schedule is the opening time in cron format, in TimeZone.
	Schedule string `json:"schedule"`
	// TimeZone is a name of the IANA database; the default is UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Duration is the length of each opening.
	Duration metav1.Duration `json:"duration"`
}

// Status is the progress of a set. Its counts sum to Clusters.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters counts the selected clusters.
	Clusters int32 `json:"clusters"`
	// Updated counts the clusters with the newest approved content.
	Updated int32 `json:"updated"`
	// Rollout is the name of the newest rollout.
	Rollout string `json:"rollout,omitempty"`
	Phase   string `json:"phase,omitempty"`
	// Exceptions lists the clusters that the set cannot serve, at most MaxExceptions.
	Exceptions []Exception        `json:"exceptions,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

const (
	// MaxExceptions bounds the exceptions of a status.
	MaxExceptions = 50
	// MaxClusters bounds the clusters of a set.
	MaxClusters = 1000
)

// Exception is a cluster that the set does not serve, with the reason.
type Exception struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Author returns the rules for the author stamp of a set: the stamp covers the spec.
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

// WithStatus returns a copy of an object with a new status, for the status subresource.
func WithStatus(object *unstructured.Unstructured, status Status) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ClusterExtensionSet %s: %w", object.GetName(), err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = fields
	return changed, nil
}
