package olmv0

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the group of OLM's API.
const Group = "operators.coreos.com"

var (
	Subscriptions          = schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: "subscriptions"}
	ClusterServiceVersions = schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: "clusterserviceversions"}
	InstallPlans           = schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: "installplans"}
	OperatorGroups         = schema.GroupVersionResource{Group: Group, Version: "v1", Resource: "operatorgroups"}
	Operators              = schema.GroupVersionResource{Group: Group, Version: "v1", Resource: "operators"}
	OperatorConditions     = schema.GroupVersionResource{Group: Group, Version: "v2", Resource: "operatorconditions"}
)

// Labels by which OLM finds the objects that a ClusterServiceVersion owns. OLM deletes no object
// without them.
const (
	OwnerLabel          = "olm.owner"
	OwnerNamespaceLabel = "olm.owner.namespace"
	OwnerKindLabel      = "olm.owner.kind"
	// CopiedFromLabel marks the copies of a ClusterServiceVersion in other namespaces.
	CopiedFromLabel = "olm.copiedFrom"
)

// OwnerLabels returns OwnerLabel, OwnerNamespaceLabel and OwnerKindLabel.
func OwnerLabels() []string { return []string{OwnerLabel, OwnerNamespaceLabel, OwnerKindLabel} }

// Kind is the kind of the owner in owner references.
const Kind = "ClusterServiceVersion"

const (
	PhaseSucceeded  = "Succeeded"
	PhaseFailed     = "Failed"
	ApprovalManual  = "Manual"
	AllNamespaces   = ""
	componentPrefix = Group + "/"
)

// Subscription requests a package.
type Subscription struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Package  string         `json:"name"`
		Channel  string         `json:"channel"`
		Approval string         `json:"installPlanApproval"`
		Config   map[string]any `json:"config"`
	} `json:"spec"`
	Status struct {
		InstalledCSV string `json:"installedCSV"`
	} `json:"status"`
}

// Component returns the label of all objects of the subscription's operator. The label without its
// prefix is the name of the Operator that lists the objects.
func (s *Subscription) Component() string { return componentPrefix + s.OperatorName() }

// OperatorName returns the name of the subscription's Operator.
func (s *Subscription) OperatorName() string { return s.Spec.Package + "." + s.Namespace }

// ClusterServiceVersion is one installed version of an operator.
type ClusterServiceVersion struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Version  string `json:"version"`
		Replaces string `json:"replaces"`
		CRDs     apis   `json:"customresourcedefinitions"`
		APIs     apis   `json:"apiservicedefinitions"`
		Install  struct {
			Spec struct {
				Deployments []struct {
					Name string `json:"name"`
				} `json:"deployments"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
	Status struct {
		Phase         string       `json:"phase"`
		Reason        string       `json:"reason"`
		Message       string       `json:"message"`
		CertsRotateAt *metav1.Time `json:"certsRotateAt"`
	} `json:"status"`
}

type apis struct {
	Owned    []API `json:"owned"`
	Required []API `json:"required"`
}

// API is a kind that an operator owns or requires: a CustomResourceDefinition, by its name, or a
// version of a group that the operator serves.
type API struct {
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
}

// Owns reports whether the operator owns an API.
func (c *ClusterServiceVersion) Owns(api API) bool {
	for _, one := range c.Owned() {
		if one.Name == api.Name && one.Group == api.Group && (one.Group == "" || one.Version == api.Version) {
			return true
		}
	}
	return false
}

// Owned returns the APIs that the operator owns.
func (c *ClusterServiceVersion) Owned() []API {
	return append(append([]API(nil), c.Spec.CRDs.Owned...), c.Spec.APIs.Owned...)
}

// Required returns the APIs that the operator requires.
func (c *ClusterServiceVersion) Required() []API {
	return append(append([]API(nil), c.Spec.CRDs.Required...), c.Spec.APIs.Required...)
}

// String returns the name of the API's object.
func (a API) String() string {
	if a.Group != "" {
		return "APIService " + a.Version + "." + a.Group
	}
	return "CustomResourceDefinition " + a.Name
}

// OperatorGroup lists the namespaces that the operators in its namespace watch.
type OperatorGroup struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Namespaces []string `json:"namespaces"`
	} `json:"status"`
}

// InstallPlan lists the objects that OLM created for a ClusterServiceVersion.
type InstallPlan struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Plan []Step `json:"plan"`
	} `json:"status"`
}

// Step is one object that OLM created.
type Step struct {
	// Resolving is the ClusterServiceVersion that needed the object.
	Resolving string `json:"resolving"`
	Resource  struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
		Name    string `json:"name"`
	} `json:"resource"`
}

// Kind returns the kind of the step's object.
func (s Step) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}

// Operator lists the components of an operator.
type Operator struct {
	Status struct {
		Components struct {
			Refs []struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
			} `json:"refs"`
		} `json:"components"`
	} `json:"status"`
}

// Read decodes an object of OLM into one of these types.
func Read(from *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", from.GetKind(), from.GetNamespace(), from.GetName(), err)
	}
	return nil
}
