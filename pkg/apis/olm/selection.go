package olm

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +k8s:deepcopy-gen=false

// ObjectSelection selects objects of a revision by the values of query parameters. Its zero value
// selects all objects.
type ObjectSelection struct {
	kind            schema.GroupKind
	namespace, name string
}

// SelectObjects returns the selection of a kind, a namespace and a name. kind is "Deployment" or
// "Deployment.apps", in any case. An empty argument matches everything.
func SelectObjects(kind, namespace, name string) ObjectSelection {
	return ObjectSelection{kind: schema.ParseGroupKind(kind), namespace: namespace, name: name}
}

// All reports whether every object is selected.
func (s ObjectSelection) All() bool { return s == ObjectSelection{} }

// Matches reports whether an object is selected.
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
