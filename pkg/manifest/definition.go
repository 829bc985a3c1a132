package manifest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefinedKind returns the kind that a CustomResourceDefinition defines. It returns an error if one
// of the fields has another type.
func (o Object) DefinedKind() (schema.GroupKind, error) {
	var definition struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(o.JSON, &definition); err != nil {
		return schema.GroupKind{}, err
	}
	return schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, nil
}
