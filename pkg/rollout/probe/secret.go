package probe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Penstock never caches the content of Secrets, and no message contains a value of a Secret: more
// users can read status, events and logs than the Secret. So probes of Secrets see only identity,
// metadata, type and immutable, and hide compared values (annotations can repeat the content).

func secretKind() schema.GroupKind { return schema.GroupKind{Kind: "Secret"} }

func isSecret(kind schema.GroupKind) bool { return kind == secretKind() }

// secretContent reports whether a path is inside the content of a Secret.
func secretContent(path []string) bool {
	return path[0] == "data" || path[0] == "stringData"
}

// visibleInSecret reports whether a probe may read a top-level field.
func visibleInSecret(field string) bool {
	return alwaysKept(field) || field == "type" || field == "immutable"
}

// visibleSecret returns the part of a Secret that probes see.
func visibleSecret(object map[string]any) map[string]any {
	visible := map[string]any{}
	for field, value := range object {
		if visibleInSecret(field) {
			visible[field] = value
		}
	}
	return visible
}

// readsOfSecret returns the reads that are allowed for a Secret.
func readsOfSecret(r Reads) Reads {
	if r.Whole {
		return Reads{Fields: [][]string{{"immutable"}, {"metadata"}, {"type"}}}
	}
	visible := Reads{Fields: [][]string{{"metadata"}}}
	for _, path := range r.Fields {
		if visibleInSecret(path[0]) {
			visible = visible.Union(Reads{Fields: [][]string{path}})
		}
	}
	return visible
}

// checkSecretReads refuses reads of a Secret's content.
func checkSecretReads(r Reads) error {
	for _, path := range r.Fields {
		if secretContent(path) {
			return fmt.Errorf("%s is the content of a Secret, which probes cannot read", strings.Join(path, "."))
		}
	}
	return nil
}
