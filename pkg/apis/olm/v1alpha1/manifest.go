package v1alpha1

import (
	"bytes"
	"errors"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Manifest is any Kubernetes object, kept as the JSON that the client sent. It is a separate type,
// and not runtime.RawExtension, so that `kubectl explain` describes it.
type Manifest struct {
	// Raw is the object in JSON.
	Raw []byte `json:"-"`
}

// MarshalJSON returns the raw JSON, or null if there is none. The receiver is a value, so that
// encoding/json finds the method for values and pointers.
func (m Manifest) MarshalJSON() ([]byte, error) {
	if len(m.Raw) == 0 {
		return []byte("null"), nil
	}
	return m.Raw, nil
}

// UnmarshalJSON copies in. A null is no manifest.
func (m *Manifest) UnmarshalJSON(in []byte) error {
	if m == nil {
		return errors.New("decoding a manifest into a nil pointer")
	}
	if bytes.Equal(in, []byte("null")) {
		return nil
	}
	m.Raw = append(m.Raw[:0], in...)
	return nil
}

// OpenAPIDefinition is written by hand: openapi-gen emits the values of extensions as strings, and
// structured-merge-diff needs a boolean here.
func (Manifest) OpenAPIDefinition() common.OpenAPIDefinition {
	return common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps: spec.SchemaProps{
			Description: "Manifest is any Kubernetes object.",
			Type:        []string{"object"},
		},
		VendorExtensible: spec.VendorExtensible{
			Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true},
		},
	}}
}
