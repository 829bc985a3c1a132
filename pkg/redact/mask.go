package redact

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Mask holds the remaining paths that may hide a value below the present value.
type Mask [][]step

type step struct {
	kind stepKind
	key  string
}

type stepKind uint8

const (
	oneKey stepKind = iota
	anyKey
	anyItem
)

// SecretMask hides the content of a Secret.
func SecretMask() Mask {
	return Mask{{{key: "data"}, {kind: anyKey}}, {{key: "stringData"}, {kind: anyKey}}}
}

// Field returns the mask of a field of an object.
func (m Mask) Field(name string) Mask {
	var below Mask
	for _, path := range m {
		if len(path) > 0 && (path[0].kind == anyKey || path[0].kind == oneKey && path[0].key == name) {
			below = append(below, path[1:])
		}
	}
	return below
}

// Item returns the mask of the items of a list.
func (m Mask) Item() Mask {
	var below Mask
	for _, path := range m {
		if len(path) > 0 && path[0].kind == anyItem {
			below = append(below, path[1:])
		}
	}
	return below
}

// Hides reports whether a value is hidden as a whole: a path ends here, or expects another type
// than the value has.
func (m Mask) Hides(value any) bool {
	for _, path := range m {
		if len(path) == 0 {
			return true
		}
		_, isObject := value.(map[string]any)
		_, isList := value.([]any)
		if value != nil && (path[0].kind == anyItem && !isList || path[0].kind != anyItem && !isObject) {
			return true
		}
	}
	return false
}

func parsePath(path string) ([]step, error) {
	var steps []step
	for rest := path; rest != ""; {
		var next step
		var err error
		if next, rest, err = parseStep(rest); err != nil {
			return nil, err
		}
		steps = append(steps, next)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("is empty, want such as .spec.password")
	}
	if steps[0].kind == anyItem {
		return nil, fmt.Errorf("starts with [*], but an object is no list")
	}
	return steps, nil
}

func parseStep(path string) (next step, rest string, err error) {
	if rest, ok := strings.CutPrefix(path, "[*]"); ok {
		return step{kind: anyItem}, rest, nil
	}
	if quoted, ok := strings.CutPrefix(path, "["); ok {
		return parseKey(quoted)
	}
	name, ok := strings.CutPrefix(path, ".")
	if !ok {
		return step{}, "", fmt.Errorf("found %q, want .field, [\"key\"] or [*]", path)
	}
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	switch {
	case name == "*":
		return step{kind: anyKey}, rest, nil
	case !manifest.IsIdentifier(name):
		return step{}, "", fmt.Errorf("%q is no identifier: write [%q]", name, name)
	}
	return step{key: name}, rest, nil
}

// parseKey parses `"key"]`.
func parseKey(quoted string) (next step, rest string, err error) {
	decoder := json.NewDecoder(strings.NewReader(quoted))
	var key string
	if err := decoder.Decode(&key); err != nil {
		return step{}, "", fmt.Errorf("found [%s, want [*] or a key in quotes, such as [\"a.b\"]", quoted)
	}
	rest = quoted[decoder.InputOffset():]
	rest, closed := strings.CutPrefix(rest, "]")
	if !closed {
		return step{}, "", fmt.Errorf("a ] is missing before %q", rest)
	}
	return step{key: key}, rest, nil
}
