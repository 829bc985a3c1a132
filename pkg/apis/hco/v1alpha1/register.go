package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group. CustomResourceDefinitions of the host serve its versions v1 and
// v1beta1 (HyperConverged).
const GroupName = "hco.kubevirt.io"

// The variables below are package-level because generated code refers to them by name.
var (
	// SchemeGroupVersion is the group and version of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, RegisterDefaults, addFieldLabels)
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme registers the kinds, their defaults, conversions and field
	// labels with a scheme.
	AddToScheme = localSchemeBuilder.AddToScheme
)

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
		&PlanHistory{},
		&PlanRollbackRequest{},
		&PlanDiff{},
		&ConfigurationProfile{},
		&ConfigurationProfileList{},
		&ConfigurationProfileDefinition{},
		&ConfigurationProfileDefinitionList{},
		&ProfileEvaluation{},
	)
	scheme.AddKnownTypeWithName(SchemeGroupVersion.WithKind(ManifestListKind), &PlanManifestList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// Fields of plans for field selectors, besides metadata.name.
const (
	// ProfileField selects by spec.profile.
	ProfileField = "spec.profile"
	// PhaseField selects by status.phase.
	PhaseField = "status.phase"
)

func addFieldLabels(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ConfigurationPlan"), convertPlanFieldLabel)
}

// convertPlanFieldLabel accepts the fields that the registry indexes. Another field is an error,
// which clients see as 400.
func convertPlanFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", ProfileField, PhaseField:
		return label, value, nil
	default:
		return "", "", fmt.Errorf("field label not supported: %q, supported are metadata.name, %s and %s", label, ProfileField, PhaseField)
	}
}
