package catalog

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "catalog.penstock.dev"

// The variables below are package-level because that is where Kubernetes code
// looks for them.
var (
	// SchemeGroupVersion is the group with the internal version.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the hub types with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
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
	return nil
}
