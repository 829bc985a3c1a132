package install

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// versionPath is the JSON pointer of a ClusterExtension's version range.
const versionPath = "/spec/source/catalog/version"

// VersionPatch is a JSON patch by which a ClusterExtension asks for another range of versions,
// where an empty one is any version. kube-apiserver refuses it for another object of the name, and when
// the spec has changed since it had this generation. Status changes at any time, and is no reason.
func VersionPatch(uid types.UID, generation int64, version string) ([]byte, error) {
	operations := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "test", "path": "/metadata/generation", "value": generation},
		{"op": "add", "path": versionPath, "value": version},
	}
	if version == "" {
		// An absent part cannot be removed.
		operations = append(operations, map[string]any{"op": "remove", "path": versionPath})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of a ClusterExtension: %w", err)
	}
	return patch, nil
}
