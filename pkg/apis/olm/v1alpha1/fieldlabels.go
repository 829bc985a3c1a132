package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Fields of revisions for field selectors, besides metadata.name.
const (
	// RevisionField selects by spec.revision, in decimal.
	RevisionField = "spec.revision"
	// LifecycleStateField selects by spec.lifecycleState.
	LifecycleStateField = "spec.lifecycleState"
)

func addFieldLabels(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(
		SchemeGroupVersion.WithKind("ClusterExtensionRevision"), convertRevisionFieldLabel)
}

// convertRevisionFieldLabel accepts the fields that the registry indexes. Another field is an
// error, which clients see as 400. A selector that silently matched nothing would be worse.
func convertRevisionFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", RevisionField, LifecycleStateField:
		return label, value, nil
	default:
		return "", "", fmt.Errorf("field label not supported: %q, supported are metadata.name, %s and %s",
			label, RevisionField, LifecycleStateField)
	}
}
