package probe

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// parsePath parses the path of a field: non-empty names joined by dots, such as
// status.readyReplicas. It cannot address elements of lists and names with dots; CEL can.
func parsePath(path string) ([]string, error) {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return nil, fmt.Errorf("field path %q has an empty part, must be names joined by dots, such as status.readyReplicas", path)
	}
	if strings.ContainsAny(path, "[]") {
		return nil, fmt.Errorf("field path %q has brackets: elements of lists are for cel", path)
	}
	return parts, nil
}

type fieldsEqual struct{ a, b []string }

func (f FieldsEqual) compile() (judge, error) {
	a, err := parsePath(f.FieldA)
	if err != nil {
		return nil, fmt.Errorf("fieldsEqual: fieldA: %w", err)
	}
	b, err := parsePath(f.FieldB)
	if err != nil {
		return nil, fmt.Errorf("fieldsEqual: fieldB: %w", err)
	}
	return fieldsEqual{a, b}, nil
}

func (f fieldsEqual) judge(v *view) Verdict {
	a, hasA := v.get(f.a...)
	b, hasB := v.get(f.b...)
	switch {
	case !hasA:
		return failing("%s is not set", strings.Join(f.a, "."))
	case !hasB:
		return failing("%s is not set", strings.Join(f.b, "."))
	case !v.budget.Weigh(a) || !v.budget.Weigh(b):
		return unknown("%s and %s are too large to be compared: the probes of an object may cost %d units", strings.Join(f.a, "."), strings.Join(f.b, "."), MaxCELCost)
	case !equal(a, b):
		return failing("%s is %s, %s is %s",
			strings.Join(f.a, "."), v.show(a), strings.Join(f.b, "."), v.show(b))
	}
	return pass()
}

func (f fieldsEqual) reads() Reads { return Reads{Fields: [][]string{f.a, f.b}} }

// equal compares JSON values; 1 and 1.0 are equal.
func equal(a, b any) bool {
	i, aInt := a.(int64)
	f, bFloat := b.(float64)
	if aInt && bFloat {
		return float64(i) == f
	}
	if _, aFloat := a.(float64); aFloat {
		if _, bInt := b.(int64); bInt {
			return equal(b, a)
		}
	}
	return reflect.DeepEqual(a, b)
}

type fieldValue struct {
	path []string
	want string
}

func (f FieldValue) compile() (judge, error) {
	path, err := parsePath(f.FieldPath)
	if err != nil {
		return nil, fmt.Errorf("fieldValue: %w", err)
	}
	return fieldValue{path, f.Value}, nil
}

func (f fieldValue) judge(v *view) Verdict {
	name := strings.Join(f.path, ".")
	value, found := v.get(f.path...)
	if !found {
		return failing("%s is not set, want %s", name, v.show(f.want))
	}
	var have string
	switch value := value.(type) {
	case string:
		have = value
	case bool, int64, float64:
		text, err := jsonForm(value)
		if err != nil {
			return unknown("%s cannot be compared with a value", name)
		}
		have = text
	default:
		return unknown("%s is %s, which cannot be compared with a value", name, typeName(value))
	}
	if have != f.want {
		return failing("%s is %s, want %s", name, v.show(value), v.show(f.want))
	}
	return pass()
}

func (f fieldValue) reads() Reads { return Reads{Fields: [][]string{f.path}} }
