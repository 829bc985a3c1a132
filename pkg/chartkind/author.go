package chartkind

import "github.com/penstock-project/penstock/pkg/extension/author"

// Author says what the author of a ChartKind answers for: its spec.
func Author() author.Subject {
	return author.Subject{Kind: Kind, Spec: true, Annotation: func(string) bool { return false }}
}
