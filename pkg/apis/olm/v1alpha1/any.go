package v1alpha1

import (
	"bytes"
	"errors"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// AnyValue is a value of any type, kept as JSON.
type AnyValue struct {
	// Raw is the value in JSON.
	Raw []byte `json:"-"`
}

// MarshalJSON returns the raw JSON, or null if there is none.
func (v AnyValue) MarshalJSON() ([]byte, error) {
	if len(v.Raw) == 0 {
		return []byte("null"), nil
	}
	return v.Raw, nil
}

// UnmarshalJSON copies in.
func (v *AnyValue) UnmarshalJSON(in []byte) error {
	if v == nil {
		return errors.New("decoding a value into a nil pointer")
	}
	v.Raw = bytes.Clone(in)
	return nil
}

// OpenAPIDefinition is written by hand: openapi-gen cannot generate a schema without a type, which
// allows any type.
func (AnyValue) OpenAPIDefinition() common.OpenAPIDefinition {
	return common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps: spec.SchemaProps{Description: "AnyValue is a value of any type."},
	}}
}
