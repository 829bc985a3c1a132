package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// statusField is the field that a kind with the status subresource reserves for its controller.
const statusField = "status"

// IsOfKubernetes reports whether an API group belongs to Kubernetes itself. Each of its kinds with
// a field status also has the subresource, so the API server ignores the field in an apply.
func IsOfKubernetes(group string) bool {
	return slices.Contains([]string{
		"", "apps", "autoscaling", "batch", "extensions", "policy",
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}, group)
}

// WithoutStatus returns the JSON of an object without the field status, and false if the object has
// none. It is for kinds with the status subresource, whose API server ignores the field.
func WithoutStatus(raw []byte) ([]byte, bool, error) {
	if !bytes.Contains(raw, []byte(`"`+statusField+`":`)) {
		return raw, false, nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil { // keeps integers as integers
		return nil, false, fmt.Errorf("reading the manifest: %w", err)
	}
	if _, has := object[statusField]; !has {
		return raw, false, nil
	}
	delete(object, statusField)
	without, err := json.Marshal(object)
	return without, err == nil, err
}

// WithoutStatus returns the manifest without status, in the form of earlier releases, and false for
// a manifest without status.
func (d Digester) WithoutStatus(object Object) (Object, bool, error) {
	without, has, err := WithoutStatus(object.JSON)
	if err != nil || !has {
		return object, false, err
	}
	earlier, err := d.FromJSON(without)
	return earlier, err == nil, err
}
