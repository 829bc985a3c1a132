package install

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

const versionPath = "/spec/source/catalog/version"

// VersionPatch returns a JSON patch that sets the version range of a ClusterExtension; an empty
// range means any version. kube-apiserver refuses the patch if the object was replaced, or if its
// spec has changed since this generation. Changes of status do not matter.
func VersionPatch(uid types.UID, generation int64, version string) ([]byte, error) {
	operations := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "test", "path": "/metadata/generation", "value": generation},
		{"op": "add", "path": versionPath, "value": version},
	}
	if version == "" {
		// A remove operation fails for an absent field.
		operations = append(operations, map[string]any{"op": "remove", "path": versionPath})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of a ClusterExtension: %w", err)
	}
	return patch, nil
}
