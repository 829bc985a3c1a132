package tree

import (
	"maps"
	"slices"
	"strings"
)

func (p place) hides(value any) bool {
	switch value.(type) {
	case secretBytes, hiddenCopy:
		return true
	}
	return p.mask.Hides(value)
}

// hiddenCopy is the value of an annotation that repeats the content of an object.
type hiddenCopy string

// secretBytes is the decoded value of a key of a Secret.
type secretBytes []byte

func isSecret(object map[string]any) bool {
	return object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

// hideCopies hides annotations in which tools keep a copy of the whole object. It hides all of them
// if the object has hidden fields, and otherwise those that contain a Secret.
func hideCopies(object map[string]any, hides bool) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return object
	}
	copied := make(map[string]any, len(annotations))
	for name, value := range annotations {
		if s, ok := value.(string); ok && carriesObject(name, s) && (hides || strings.Contains(s, "Secret")) {
			value = hiddenCopy(s)
		}
		copied[name] = value
	}
	return with(object, "metadata", with(metadata, "annotations", copied))
}

// carriesObject reports whether an annotation may be a copy of its object: as JSON, or compressed.
func carriesObject(name, value string) bool {
	if slices.ContainsFunc([]string{"last-applied", "last-handled", "/original"}, func(part string) bool {
		return strings.Contains(name, part)
	}) {
		return true
	}
	value = strings.TrimSpace(value)
	// H4sI is the beginning of gzip data in base64.
	return strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") || strings.HasPrefix(value, "H4sI")
}

func with(object map[string]any, name string, value any) map[string]any {
	copied := make(map[string]any, len(object)+1)
	maps.Copy(copied, object)
	copied[name] = value
	return copied
}
