package applycheck

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// walk visits an object with its type, like kube-apiserver's merge library (structured-merge-diff,
// typed/validate.go). Unlike the library, it reports the positions of duplicates and keeps values
// out of messages.
type walk struct {
	schema   *smdschema.Schema
	path     Path
	findings *Findings
	// duplicates is called for every item that repeats an earlier item; it may be nil.
	duplicates func(list Path, element string, first, index int)
}

func (w *walk) found(reason Reason, problem string) {
	w.findings.add(Finding{Reason: reason, Path: w.path, Problem: problem})
}

func (w *walk) value(ref smdschema.TypeRef, value any) {
	if isUntyped(ref) || value == nil {
		return // null is allowed for every type
	}
	atom, ok := w.schema.Resolve(ref)
	if !ok {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if atom.Map != nil {
			w.fields(atom.Map, v)
			return
		}
	case []any:
		if atom.List != nil {
			w.items(atom.List, v)
			return
		}
	default:
		if atom.Scalar != nil {
			w.scalar(*atom.Scalar, value)
			return
		}
	}
	w.found(WrongType, "is "+manifest.TypeName(value)+", want "+wanted(atom))
}

// isUntyped reports whether a type accepts any value.
func isUntyped(ref smdschema.TypeRef) bool {
	return ref.NamedType != nil && strings.HasPrefix(*ref.NamedType, "__untyped_")
}

func (w *walk) scalar(kind smdschema.Scalar, value any) {
	ok := true
	switch kind {
	case smdschema.Numeric:
		ok = isNumber(value)
	case smdschema.String:
		_, ok = value.(string)
	case smdschema.Boolean:
		_, ok = value.(bool)
	}
	if !ok {
		w.found(WrongType, "is "+manifest.TypeName(value)+", want "+scalarName(kind)+hint(kind, value))
	}
}

// hint returns advice about values that YAML parses as another type than their author meant.
func hint(kind smdschema.Scalar, value any) string {
	_, isText := value.(string)
	switch {
	case kind == smdschema.String && !isText:
		return ": put it in quotes"
	case kind != smdschema.String && isText:
		return ": take it out of its quotes"
	}
	return ""
}

func (w *walk) fields(t *smdschema.Map, object map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		ref := t.ElementType
		w.path = append(w.path, Step{Field: name})
		if field, ok := t.FindField(name); ok {
			w.value(field.Type, object[name])
		} else if ref == (smdschema.TypeRef{}) {
			w.found(Unknown, "is not a field of this type")
		} else {
			w.value(ref, object[name])
		}
		w.path = w.path[:len(w.path)-1]
	}
}

func (w *walk) items(t *smdschema.List, list []any) {
	var seen map[string]int
	if t.ElementRelationship == smdschema.Associative {
		seen = make(map[string]int, len(list))
	}
	for i, item := range list {
		w.path = append(w.path, Step{Index: i})
		if seen == nil || w.identified(t, item, i, seen) {
			w.value(t.ElementType, item)
		}
		w.path = w.path[:len(w.path)-1]
	}
}

// identified checks the key of an item, and reports whether its content can be checked.
func (w *walk) identified(t *smdschema.List, item any, i int, seen map[string]int) bool {
	key, shown, problem := w.key(t, item)
	if problem != "" {
		w.found(NoKey, problem)
		return false
	}
	first, twice := seen[key]
	if !twice {
		seen[key] = i
		return true
	}
	if w.duplicates != nil {
		element := ""
		if t.ElementType.NamedType != nil {
			element = *t.ElementType.NamedType
		}
		w.duplicates(w.path[:len(w.path)-1], element, first, i)
	}
	w.findings.add(Finding{Reason: Duplicate, Path: w.path, First: first, Problem: fmt.Sprintf(
		"items %d and %d of the list (counted from 0) %s: server-side apply accepts each only once", first, i, shown)})
	return true
}

// key returns the identity of a list item: equal for items that server-side apply treats as the
// same item. shown describes the key for users; it omits the items of a set, which are content.
func (w *walk) key(t *smdschema.List, item any) (key, shown, problem string) {
	if len(t.Keys) == 0 {
		switch item.(type) {
		case nil, map[string]any, []any:
			return "", "", "is " + manifest.TypeName(item) + ", want text, a number or a boolean"
		}
		return exactly(item), "are equal", ""
	}
	object, ok := item.(map[string]any)
	if !ok {
		return "", "", "is " + manifest.TypeName(item) + ", want an object"
	}
	var keys, words []string
	for _, name := range t.Keys {
		value, given := object[name]
		if !given {
			value = w.keyDefault(t, name)
			given = value != nil
		}
		if !given {
			keys = append(keys, "")
			continue
		}
		keys = append(keys, exactly(value))
		words = append(words, name+" "+text.Clip(exactly(value), maxNameBytes))
	}
	if len(words) == 0 {
		return "", "", "has none of the fields that identify it: " + strings.Join(t.Keys, ", ")
	}
	return strings.Join(keys, "\x00"), "have the same key (" + strings.Join(words, ", ") + ")", ""
}

func (w *walk) keyDefault(t *smdschema.List, name string) any {
	atom, ok := w.schema.Resolve(t.ElementType)
	if !ok || atom.Map == nil {
		return nil
	}
	field, _ := atom.Map.FindField(name)
	return field.Default
}

// exactly returns text that is equal for equal values and different for different values.
func exactly(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64:
		return true
	}
	return false
}

func wanted(atom smdschema.Atom) string {
	switch {
	case atom.Map != nil:
		return "an object"
	case atom.List != nil:
		return "a list"
	case atom.Scalar != nil:
		return scalarName(*atom.Scalar)
	}
	return "nothing"
}

func scalarName(kind smdschema.Scalar) string {
	switch kind {
	case smdschema.Numeric:
		return "a number"
	case smdschema.String:
		return "a string"
	case smdschema.Boolean:
		return "a boolean"
	default:
		return "text, a number or a boolean"
	}
}
