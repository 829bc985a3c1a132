package extension

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the resource of ClusterExtensions. The group and version are OLM's.
var Resource = schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1", Resource: "clusterextensions"}

// Kind is the kind of ClusterExtensions.
var Kind = Resource.GroupVersion().WithKind("ClusterExtension")

// OperatorControllerLease is the name of operator-controller's lease, in the namespace where it is
// installed.
const OperatorControllerLease = "9c4404e7.operatorframework.io"

// OperatorControllerNamespaces returns the usual namespaces of operator-controller in OLM v1 and in
// OpenShift.
func OperatorControllerNamespaces() []string {
	return []string{"olmv1-system", "openshift-operator-controller"}
}

const (
	// SourceCatalog is a package in ClusterCatalogs.
	SourceCatalog = "Catalog"
	// SourceImage is an image with a bundle or manifests. OLM lacks this source.
	SourceImage = "Image"
	// SourceChart is a Helm chart in a registry. OLM lacks this source.
	SourceChart = "Chart"
)

// Policies of upgrades between versions of a catalog.
const (
	// FromCatalog allows only upgrades that the catalog defines.
	FromCatalog = "CatalogProvided"
	// SelfCertified allows every version.
	SelfCertified = "SelfCertified"
)

const (
	EnforcementStrict = "Strict"
	EnforcementNone   = "None"
)

// Extension is a ClusterExtension.
type Extension struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty,omitzero"`
}

// Spec is written by users.
type Spec struct {
	// Namespace is the namespace of the extension's objects; it must exist. Immutable.
	Namespace string `json:"namespace"`
	// ServiceAccount is in Namespace. OLM ignores it; Penstock makes automatic upgrades with its
	// rights.
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`
	Source         Source          `json:"source"`
	Install        *Install        `json:"install,omitempty"`
	Config         *Config         `json:"config,omitempty"`
	// ProgressDeadlineMinutes is the deadline of a rollout, 10 to 720; 0 means no deadline.
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`
}

// ServiceAccount names the ServiceAccount of an extension.
type ServiceAccount struct {
	Name string `json:"name"`
}

// Source has exactly one field set, the one that SourceType names.
type Source struct {
	SourceType string       `json:"sourceType"`
	Catalog    *Catalog     `json:"catalog,omitempty"`
	Image      *ImageSource `json:"image,omitempty"`
	Chart      *ChartSource `json:"chart,omitempty"`
}

// Catalog requests a package.
type Catalog struct {
	// PackageName is immutable.
	PackageName string `json:"packageName"`
	// Version is a range in the grammar of Masterminds/semver; empty for any version.
	Version string `json:"version,omitempty"`
	// Channels restrict bundles and upgrades; empty allows all.
	Channels []string `json:"channels,omitempty"`
	// Selector chooses ClusterCatalogs by their labels; nil chooses all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// UpgradeConstraintPolicy is CatalogProvided (the default) or SelfCertified.
	UpgradeConstraintPolicy string `json:"upgradeConstraintPolicy,omitempty"`
}

// ImageSource is an image with a bundle or manifests.
type ImageSource struct {
	// Ref is an image reference with a tag or a digest.
	Ref string `json:"ref"`
}

// ChartSource is a Helm chart in a registry.
type ChartSource struct {
	// Ref is an image reference with a tag or a digest.
	Ref string `json:"ref"`
}

// Install has the settings of an installation.
type Install struct {
	Preflight *Preflight `json:"preflight,omitempty"`
}

// Preflight has the checks before an installation.
type Preflight struct {
	CRDUpgradeSafety *CRDUpgradeSafety `json:"crdUpgradeSafety,omitempty"`
}

// CRDUpgradeSafety is Strict (the default) or None.
type CRDUpgradeSafety struct {
	Enforcement string `json:"enforcement"`
}

// Config is the configuration of the bundle or chart.
type Config struct {
	// ConfigType is Inline.
	ConfigType string `json:"configType"`
	// Inline is a JSON object: the values of a chart, or the configuration of a bundle.
	Inline json.RawMessage `json:"inline,omitempty"`
}

// Status has the installed bundle, and the state of rollouts.
type Status struct {
	// Conditions are a list map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Install is nil while nothing is installed.
	Install *InstallStatus `json:"install,omitempty"`
	// ActiveRevisions are the installed revision and the revisions that are being rolled out.
	ActiveRevisions []ActiveRevision `json:"activeRevisions,omitempty"`
}

// InstallStatus names the installed bundle.
type InstallStatus struct {
	Bundle Bundle `json:"bundle"`
}

// Bundle is one version of a package.
type Bundle struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Release *string `json:"release,omitempty"`
}

// ActiveRevision is a revision that is not archived. It has conditions only until it succeeds.
type ActiveRevision struct {
	Name       string             `json:"name"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// From decodes a ClusterExtension.
func From(object *unstructured.Unstructured) (*Extension, error) {
	extension := &Extension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, extension); err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %s: %w", object.GetName(), err)
	}
	return extension, nil
}

// WithStatus returns a copy of an object with another status, for a write to the status
// subresource.
func WithStatus(object *unstructured.Unstructured, status Status) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ClusterExtension %s: %w", object.GetName(), err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = fields
	return changed, nil
}
