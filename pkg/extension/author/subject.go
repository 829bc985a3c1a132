package author

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/extension"
)

// Subject is a kind of which it is noted who wrote it, and what they answer for.
type Subject struct {
	Kind schema.GroupVersionKind
	// Spec is whether they answer for the spec. A stamp is for one generation then.
	Spec bool
	// Annotation tells for which annotations they answer.
	Annotation func(key string) bool
}

// ClusterExtensions are written whole: the spec, and all annotations of ours.
func ClusterExtensions() Subject {
	return Subject{Kind: extension.Kind, Spec: true, Annotation: func(key string) bool {
		return strings.HasPrefix(key, extension.AnnotationPrefix) && key != extension.AuthorAnnotation
	}}
}

// Mark is what a stamp says of its kind: nothing for ClusterExtensions, which had stamps first.
func (s Subject) Mark() string {
	if s.Kind == extension.Kind {
		return ""
	}
	return s.Kind.GroupKind().String()
}
