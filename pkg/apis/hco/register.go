package hco

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "hco.kubevirt.io"

// The variables below are package-level because Kubernetes code refers to them by name.
var (
	// SchemeGroupVersion is the group with the internal version.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the hub types with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind returns the group-qualified kind.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the group-qualified resource.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&ConfigurationPlan{},
		&ConfigurationPlanList{},
		&PlanApprovalRequest{},
		&PlanRetryRequest{},
		&PlanRollbackRequest{},
		&ConfigurationProfileDefinition{},
		&ConfigurationProfileDefinitionList{},
		&ProfileEvaluation{},
	)
	// List is the kind on the wire, see v1alpha1.ManifestListKind.
	scheme.AddKnownTypeWithName(SchemeGroupVersion.WithKind("List"), &PlanManifestList{})
	return nil
}
