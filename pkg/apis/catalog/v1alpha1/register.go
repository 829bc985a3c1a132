package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group. Penstock serves all of its versions.
const GroupName = "catalog.penstock.dev"

// The variables below are package-level because generated code refers to them by name.
var (
	// SchemeGroupVersion is the group and version of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, RegisterDefaults, addFieldLabels)
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme registers the kinds, their conversions and field labels with a scheme.
	AddToScheme = localSchemeBuilder.AddToScheme
)

// Resource returns the group-qualified resource.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&CatalogPackage{},
		&CatalogPackageList{},
		&CatalogPackageVersions{},
		&CatalogPackageGraph{},
		&CatalogPackageUpgrades{},
		&CatalogPackageIcon{},
		&CatalogPackageOptions{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// Fields of packages for field selectors, besides metadata.name.
const (
	// CatalogField selects by the catalog.
	CatalogField = "catalog"
	// DefaultChannelField selects by the default channel.
	DefaultChannelField = "defaultChannel"
	// LatestField selects by the latest version.
	LatestField = "latest"
	// DeprecatedField selects deprecated packages (true) or other packages (false).
	DeprecatedField = "deprecated"
)

func addFieldLabels(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("CatalogPackage"), convertFieldLabel)
}

// convertFieldLabel accepts the fields that the registry knows. Another field is an error, which
// clients see as 400.
func convertFieldLabel(label, value string) (string, string, error) {
	switch label {
	case DeprecatedField:
		if value != "true" && value != "false" {
			return "", "", fmt.Errorf("field label %s: %q, want true or false", label, value)
		}
		return label, value, nil
	case "metadata.name", CatalogField, DefaultChannelField, LatestField:
		return label, value, nil
	default:
		return "", "", fmt.Errorf("field label not supported: %q, supported are metadata.name, %s, %s, %s and %s", label, CatalogField, DefaultChannelField, LatestField, DeprecatedField)
	}
}
