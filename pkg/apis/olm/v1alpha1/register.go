package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group. CustomResourceDefinitions of the host serve its version v1
// (ClusterExtension and other kinds).
const GroupName = "olm.operatorframework.io"

// The variables below are package-level because generated code refers to them by name: generated
// files register with localSchemeBuilder, and generated clients read SchemeGroupVersion and
// AddToScheme.
var (
	// SchemeGroupVersion is the group and version of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, RegisterDefaults, addFieldLabels)
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme registers the kinds, their defaults, conversions and field labels with a scheme.
	AddToScheme = localSchemeBuilder.AddToScheme
)

// Resource returns the group-qualified resource.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&ClusterExtensionRevision{},
		&ClusterExtensionRevisionList{},
		&ClusterExtensionRollout{},
		&ClusterExtensionRolloutList{},
		&RolloutRequest{},
		&RevisionManifestsOptions{},
		&RevisionManifest{},
		&RevisionDiff{},
		&RevisionDiffOptions{},
		&RevisionHistory{},
		&RevisionHistoryList{},
		&RevisionObjects{},
		&RevisionRollback{},
		&UpgradeReadiness{},
		&UpgradeReadinessOptions{},
	)
	scheme.AddKnownTypeWithName(SchemeGroupVersion.WithKind(ManifestListKind), &RevisionManifestList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
