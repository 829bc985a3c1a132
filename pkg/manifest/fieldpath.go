package manifest

import (
	"fmt"
	"strings"
)

// FieldPath names a field of an object, or the same field of several list items:
//
//	spec.replicas
//	metadata.annotations["example.com/seen"]
//	spec.template.spec.containers[name=main].resources
//	spec.ports[port=80,protocol=TCP].nodePort
//	spec.template.spec.containers[*].image
type FieldPath []FieldStep

// FieldStep is one step of a path: into a field of a map, or into items of a list.
type FieldStep struct {
	// Field of a map; empty for a step into a list.
	Field string
	// Keys identify a list item, in the order of the text. Without Keys and Field, the step selects
	// every item.
	Keys []FieldKey
}

// FieldKey is a field of a list item and its value as text: numbers and booleans in
// their JSON form.
type FieldKey struct{ Name, Value string }

// ParseFieldPath parses a path. The error quotes the unreadable part.
func ParseFieldPath(text string) (FieldPath, error) {
	var path FieldPath
	rest := strings.TrimPrefix(text, ".")
	for first := true; rest != ""; first = false {
		var step FieldStep
		var err error
		switch {
		case rest[0] == '[':
			step, rest, err = bracketed(rest[1:])
		case first || rest[0] == '.':
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			step.Field, rest = rest[:end], rest[end:]
			if step.Field == "" || strings.ContainsAny(step.Field, `"]`) {
				err = fmt.Errorf(`a field has no name, or one that must be written as ["name"]`)
			}
		default:
			err = fmt.Errorf("%q must begin with . or [", rest)
		}
		if err != nil {
			return nil, fmt.Errorf("field path %q: %w", text, err)
		}
		path = append(path, step)
	}
	if len(path) == 0 || path[0].Field == "" {
		return nil, fmt.Errorf("field path %q: it must begin with the name of a field", text)
	}
	return path, nil
}

// bracketed parses a step after "[", and returns the text after its "]".
func bracketed(text string) (FieldStep, string, error) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		name, rest, closed := strings.Cut(quoted, `"]`)
		if !closed || name == "" || strings.Contains(name, `"`) {
			return FieldStep{}, "", fmt.Errorf(`a quoted name must not be empty and must end with "]`)
		}
		return FieldStep{Field: name}, rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return FieldStep{}, "", fmt.Errorf("a [ has no ]")
	}
	if inner == "*" {
		return FieldStep{}, rest, nil
	}
	var step FieldStep
	for pair := range strings.SplitSeq(inner, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return FieldStep{}, "", fmt.Errorf(`[%s] must be [*], [key=value] or ["name"]`, inner)
		}
		step.Keys = append(step.Keys, FieldKey{Name: name, Value: value})
	}
	return step, rest, nil
}

// String returns the path in the form that ParseFieldPath parses.
func (p FieldPath) String() string {
	var out strings.Builder
	for i, step := range p {
		switch {
		case step.Field != "" && strings.ContainsAny(step.Field, `.[]"`):
			fmt.Fprintf(&out, `["%s"]`, step.Field)
		case step.Field != "" && i == 0:
			out.WriteString(step.Field)
		case step.Field != "":
			out.WriteString("." + step.Field)
		case len(step.Keys) == 0:
			out.WriteString("[*]")
		default:
			pairs := make([]string, len(step.Keys))
			for j, key := range step.Keys {
				pairs[j] = key.Name + "=" + key.Value
			}
			out.WriteString("[" + strings.Join(pairs, ",") + "]")
		}
	}
	return out.String()
}

// IsIdentifier reports whether a key needs no quotes in a printed path. Dashes are allowed, because
// they are common in keys.
func IsIdentifier(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-') {
			return false
		}
	}
	return name != ""
}
