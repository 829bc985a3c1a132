package v1alpha1

import (
	"bytes"
	"errors"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// JSONObject is any JSON object, kept as the client sent it.
type JSONObject struct {
	// Raw is the object in JSON.
	Raw []byte `json:"-"`
}

// MarshalJSON returns the raw JSON, or null if there is none. The receiver is a value, so that
// encoding/json finds the method for values and pointers.
func (o JSONObject) MarshalJSON() ([]byte, error) {
	if len(o.Raw) == 0 {
		return []byte("null"), nil
	}
	return o.Raw, nil
}

// UnmarshalJSON copies in. A null is no object.
func (o *JSONObject) UnmarshalJSON(in []byte) error {
	if o == nil {
		return errors.New("decoding an object into a nil pointer")
	}
	if bytes.Equal(in, []byte("null")) {
		return nil
	}
	o.Raw = append(o.Raw[:0], in...)
	return nil
}

// OpenAPIDefinition is written by hand: openapi-gen emits the values of extensions as strings, and
// structured-merge-diff needs a boolean here.
func (JSONObject) OpenAPIDefinition() common.OpenAPIDefinition {
	return common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps: spec.SchemaProps{
			Description: "JSONObject is any object.",
			Type:        []string{"object"},
		},
		VendorExtensible: spec.VendorExtensible{
			Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true},
		},
	}}
}
