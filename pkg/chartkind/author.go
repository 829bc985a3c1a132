package chartkind

import "github.com/penstock-project/penstock/pkg/extension/author"

// Author returns the part of a ChartKind that its author signs: the spec.
func Author() author.Subject {
	return author.Subject{Kind: Kind, Spec: true, Annotation: func(string) bool { return false }}
}
