package olm

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +k8s:deepcopy-gen=false

// ObjectSelection picks objects of a revision by what query parameters name. Its
// zero value picks all.
type ObjectSelection struct {
	kind            schema.GroupKind
	namespace, name string
}

// SelectObjects returns the selection of a kind, "Deployment" or
// "Deployment.apps" in any case, a namespace and a name. An empty field is not
// looked at.
func SelectObjects(kind, namespace, name string) ObjectSelection {
	return ObjectSelection{kind: schema.ParseGroupKind(kind), namespace: namespace, name: name}
}

// All tells that every object is picked.
func (s ObjectSelection) All() bool { return s == ObjectSelection{} }

// Matches tells whether an object is picked.
func (s ObjectSelection) Matches(kind schema.GroupKind, namespace, name string) bool {
	switch {
	case s.kind.Kind != "" && !strings.EqualFold(s.kind.Kind, kind.Kind):
	case s.kind.Group != "" && !strings.EqualFold(s.kind.Group, kind.Group):
	case s.namespace != "" && s.namespace != namespace:
	case s.name != "" && s.name != name:
	default:
		return true
	}
	return false
}
