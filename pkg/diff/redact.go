package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Redaction names fields to hide: whether they changed is shown, their values
// never are.
type Redaction struct {
	// Group and Kind of the objects, as in "apps" and "Deployment".
	Group, Kind string
	// Path leads to the field, such as `.spec.auth.password`. `*` stands for
	// any key of an object, `[*]` for any item of a list, and a key that is no
	// identifier is quoted: `.spec.users[*].settings["a.b"].*`. All of the value
	// behind the path is hidden. Where an object has something of another type
	// than the path expects (a string in place of a list), that is hidden.
	Path string
}

// Redactor hides fields. Its zero value hides the content of Secrets.
type Redactor struct {
	masks map[schema.GroupKind]mask
}

// NewRedactor returns a Redactor of fields beyond the content of Secrets. What
// is wrong with a path is an error that names it.
func NewRedactor(rules ...Redaction) (*Redactor, error) {
	masks := make(map[schema.GroupKind]mask)
	for _, rule := range rules {
		if rule.Kind == "" {
			return nil, fmt.Errorf("redaction of %q: kind is missing", rule.Path)
		}
		steps, err := parseMask(rule.Path)
		if err != nil {
			return nil, fmt.Errorf("redaction of %s: path %q: %w", rule.Kind, rule.Path, err)
		}
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		masks[kind] = append(masks[kind], steps)
	}
	return &Redactor{masks: masks}, nil
}

// mask is what is still to be matched of the paths that may hide something
// below a value.
type mask [][]maskStep

type maskStep struct {
	kind maskKind
	key  string
}

type maskKind uint8

const (
	oneKey maskKind = iota
	anyKey
	anyItem
)

func (r *Redactor) mask(kind schema.GroupKind) mask {
	if r == nil {
		return nil
	}
	return r.masks[kind]
}

func (m mask) field(name string) mask {
	var below mask
	for _, steps := range m {
		if steps[0].kind == anyKey || steps[0].kind == oneKey && steps[0].key == name {
			below = append(below, steps[1:])
		}
	}
	return below
}

func (m mask) item() mask {
	var below mask
	for _, steps := range m {
		if steps[0].kind == anyItem {
			below = append(below, steps[1:])
		}
	}
	return below
}

// hides tells whether a value is hidden as a whole: a path ends here, or cannot
// go on as the value has another type than it expects.
func (m mask) hides(value any) bool {
	switch value.(type) {
	case secretBytes, concealed:
		return true
	}
	for _, steps := range m {
		if len(steps) == 0 {
			return true
		}
		_, isObject := value.(map[string]any)
		_, isList := value.([]any)
		if steps[0].kind == anyItem && !isList || steps[0].kind != anyItem && !isObject {
			return true
		}
	}
	return false
}

func parseMask(path string) ([]maskStep, error) {
	var steps []maskStep
	for rest := path; rest != ""; {
		var step maskStep
		var err error
		if step, rest, err = parseMaskStep(rest); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("is empty, want such as .spec.password")
	}
	if steps[0].kind == anyItem {
		return nil, fmt.Errorf("starts with [*], but an object is no list")
	}
	return steps, nil
}

func parseMaskStep(path string) (step maskStep, rest string, err error) {
	if rest, ok := strings.CutPrefix(path, "[*]"); ok {
		return maskStep{kind: anyItem}, rest, nil
	}
	if quoted, ok := strings.CutPrefix(path, "["); ok {
		key, rest, err := unquotePrefix(quoted)
		if err != nil {
			return maskStep{}, "", err
		}
		if rest, ok = strings.CutPrefix(rest, "]"); !ok {
			return maskStep{}, "", fmt.Errorf("a ] is missing before %q", rest)
		}
		return maskStep{key: key}, rest, nil
	}
	name, ok := strings.CutPrefix(path, ".")
	if !ok {
		return maskStep{}, "", fmt.Errorf("found %q, want .field, [\"key\"] or [*]", path)
	}
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	switch {
	case name == "*":
		return maskStep{kind: anyKey}, rest, nil
	case !isIdentifier(name):
		return maskStep{}, "", fmt.Errorf("%q is no identifier: write [%s]", name, quote(name))
	}
	return maskStep{key: name}, rest, nil
}

// concealed is an annotation's value that repeats the content of an object.
type concealed string

// secretBytes are what a key of a Secret holds, decoded.
type secretBytes []byte

func isSecret(object map[string]any) bool {
	return object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

// secretMask hides the content of a Secret wherever it is found, at the top or
// within another object, as in a template.
func secretMask() mask {
	return mask{{{key: "data"}, {kind: anyKey}}, {{key: "stringData"}, {kind: anyKey}}}
}

// conceal hides annotations in which tools keep a copy of the whole object: all
// of them if the object is known to have something to hide, otherwise those that
// speak of Secrets.
func conceal(object map[string]any, hides bool) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return object
	}
	copied := make(map[string]any, len(annotations))
	for name, value := range annotations {
		if s, ok := value.(string); ok && carriesObject(name, s) && (hides || strings.Contains(s, "Secret")) {
			value = concealed(s)
		}
		copied[name] = value
	}
	return with(object, "metadata", with(metadata, "annotations", copied))
}

// carriesObject tells whether an annotation may be a copy of its object: as
// JSON, or compressed.
func carriesObject(name, value string) bool {
	if slices.ContainsFunc([]string{"last-applied", "last-handled", "/original"}, func(part string) bool {
		return strings.Contains(name, part)
	}) {
		return true
	}
	value = strings.TrimSpace(value)
	// H4sI is how gzip begins in base64.
	return strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") || strings.HasPrefix(value, "H4sI")
}

// with returns a copy of an object with another value of one field.
func with(object map[string]any, name string, value any) map[string]any {
	copied := make(map[string]any, len(object)+1)
	maps.Copy(copied, object)
	copied[name] = value
	return copied
}
