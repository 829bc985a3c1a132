package clustercatalog

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the resource of ClusterCatalogs. Its group and version are OLM's.
var Resource = schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1", Resource: "clustercatalogs"}

// NameLabel has the name of the catalog. Selectors of extensions use it.
const NameLabel = "olm.operatorframework.io/metadata.name"

// CatalogdLease is the name of catalogd's lease, in the namespace where it is installed.
const CatalogdLease = "catalogd-operator-lock"

// CatalogdNamespaces returns the usual namespaces of catalogd in OLM v1 and in OpenShift.
func CatalogdNamespaces() []string { return []string{"olmv1-system", "openshift-catalogd"} }

// CatalogdFinalizer is set by OLM's catalogd. A program that replaces catalogd has to remove it.
const CatalogdFinalizer = "olm.operatorframework.io/delete-server-cache"

// Unavailable is the availability mode of a disabled catalog.
const Unavailable = "Unavailable"

// SourceImage is the only source type.
const SourceImage = "Image"

// Catalog is a ClusterCatalog.
type Catalog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty,omitzero"`
}

// Spec names the image of a catalog, and how the catalog is used.
type Spec struct {
	Source           Source `json:"source"`
	Priority         int32  `json:"priority,omitempty"`
	AvailabilityMode string `json:"availabilityMode,omitempty"`
}

// Source is the origin of the content.
type Source struct {
	Type  string       `json:"type"`
	Image *ImageSource `json:"image,omitempty"`
}

// ImageSource is an image. The interval is in minutes; nil turns polling off.
type ImageSource struct {
	Ref                 string `json:"ref"`
	PollIntervalMinutes *int   `json:"pollIntervalMinutes,omitempty"`
}

// Status describes the served content and the progress of the spec.
type Status struct {
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
	ResolvedSource *ResolvedSource    `json:"resolvedSource,omitempty"`
	URLs           *URLs              `json:"urls,omitempty"`
	LastUnpacked   *metav1.Time       `json:"lastUnpacked,omitempty"`
}

// ResolvedSource is the origin of the served content.
type ResolvedSource struct {
	Type  string         `json:"type"`
	Image *ResolvedImage `json:"image,omitempty"`
}

// ResolvedImage is an image with its digest.
type ResolvedImage struct {
	Ref string `json:"ref"`
}

// URLs are the URLs of the content.
type URLs struct {
	Base string `json:"base"`
}

// From decodes a ClusterCatalog.
func From(object *unstructured.Unstructured) (*Catalog, error) {
	catalog := &Catalog{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, catalog); err != nil {
		return nil, fmt.Errorf("reading ClusterCatalog %s: %w", object.GetName(), err)
	}
	return catalog, nil
}

// WithStatus returns a copy of an object with another status, for a write to the status
// subresource.
func WithStatus(object *unstructured.Unstructured, status Status) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of ClusterCatalog %s: %w", object.GetName(), err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = fields
	return changed, nil
}

// Off reports whether the catalog is disabled.
func (c *Catalog) Off() bool { return c.Spec.AvailabilityMode == Unavailable }

// Ref returns the image of the catalog; "" if there is none.
func (c *Catalog) Ref() string {
	if c.Spec.Source.Image == nil {
		return ""
	}
	return c.Spec.Source.Image.Ref
}

// Poll returns the interval of checks for a newer image; 0 for none.
func (c *Catalog) Poll() time.Duration {
	if c.Spec.Source.Image == nil || c.Spec.Source.Image.PollIntervalMinutes == nil {
		return 0
	}
	return time.Duration(*c.Spec.Source.Image.PollIntervalMinutes) * time.Minute
}

// Resolved returns the served image with its digest from the status; "" if none is served.
func (c *Catalog) Resolved() string {
	if c.Status.ResolvedSource == nil || c.Status.ResolvedSource.Image == nil {
		return ""
	}
	return c.Status.ResolvedSource.Image.Ref
}

// SelectorLabels returns the labels for selectors. They include the name label even if it is not
// set yet.
func (c *Catalog) SelectorLabels() map[string]string {
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[NameLabel] = c.Name
	return labels
}
