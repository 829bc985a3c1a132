package author

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/extension"
)

// Subject is a kind whose author is recorded, and the part that the author signs.
type Subject struct {
	Kind schema.GroupVersionKind
	// Spec is true if the part includes the spec. Then a stamp is valid for one generation.
	Spec bool
	// Annotation reports whether the part includes an annotation.
	Annotation func(key string) bool
}

// ClusterExtensions returns the subject of ClusterExtensions: the spec, and all of Penstock's
// annotations.
func ClusterExtensions() Subject {
	return Subject{Kind: extension.Kind, Spec: true, Annotation: func(key string) bool {
		return strings.HasPrefix(key, extension.AnnotationPrefix) && key != extension.AuthorAnnotation
	}}
}

// Mark returns the kind's mark in a stamp. It is empty for ClusterExtensions, whose stamps are
// older than the mark.
func (s Subject) Mark() string {
	if s.Kind == extension.Kind {
		return ""
	}
	return s.Kind.GroupKind().String()
}
