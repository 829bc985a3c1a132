package review

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/diff/words"
	"github.com/penstock-project/penstock/pkg/note"
)

// narrowing finds values that a schema accepted and no longer accepts.
type narrowing struct {
	version string
	stop    func() bool
	found   []refusal
	places  map[refusal][]string
}

// refusal is a restriction of a schema, without its places: a type that is used in many places
// changes in all of them.
type refusal struct {
	severity     Severity
	reason, what string
}

// refuses records a refusal at a place.
func (n *narrowing) refuses(at *tree.Path, severity Severity, reason, format string, args ...any) {
	where := at.String()
	if strings.HasPrefix(where, ".status") {
		// The controller writes status, so users need not change anything.
		severity = note.Info
	}
	found := refusal{severity, reason, message(format, args...)}
	if n.places == nil {
		n.places = make(map[refusal][]string)
	}
	if n.places[found] == nil {
		n.found = append(n.found, found)
	}
	n.places[found] = append(n.places[found], where)
}

func (n *narrowing) write(w *writer) {
	for _, found := range n.found {
		places := n.places[found]
		if len(places) == 1 && places[0] == "" {
			w.add(found.severity, found.reason, "%s: the object %s", n.version, phrase(found.what))
			continue
		}
		w.add(found.severity, found.reason, "%s: %s %s", n.version, enumerate(places), phrase(found.what))
	}
}

func (n *narrowing) compare(at *tree.Path, old, new *tree.Node) {
	switch {
	case n.stop() || old == nil && new == nil || old != nil && new != nil && tree.Equal(old, new):
		return
	case old == nil:
		n.refuses(at, note.Warning, note.Narrowed, "gets a schema")
		return
	case new == nil:
		return
	}
	n.types(at, old, new)
	n.bounds(at, old, new)
	n.values(at, old, new)
	n.fields(at, old, new)
	if items := old.Field("items"); items != nil {
		n.compare(at.Append("[*]"), items, new.Field("items"))
	}
	before, after := old.Field("additionalProperties"), new.Field("additionalProperties")
	if before != nil && before.Kind() == tree.Object && after != nil && after.Kind() == tree.Object {
		n.compare(at.Append(".*"), before, after)
	}
}

func (n *narrowing) types(at *tree.Path, old, new *tree.Node) {
	was, is := typeOfSchema(old), typeOfSchema(new)
	widened := was == is || is == "" || is == "integer or string" && (was == "integer" || was == "string") || was == "integer" && is == "number"
	switch {
	case widened:
	case was == "" && at.IsRoot():
		// Every object is of type object.
	case was == "":
		n.refuses(at, note.Warning, note.Narrowed, words.MustBeOfType, is)
	default:
		n.refuses(at, note.Critical, note.Narrowed, words.TypeChanges, was, is)
	}
	if old.Field("nullable").IsTrue() && !new.Field("nullable").IsTrue() {
		n.refuses(at, note.Warning, note.Narrowed, "may no longer be null")
	}
	if listType(old) != listType(new) && listType(new) != "atomic" {
		n.refuses(at, note.Warning, note.Narrowed, "changes its list type from %s to %s", listType(old), listType(new))
	}
}

func typeOfSchema(s *tree.Node) string {
	if s.Field("x-kubernetes-int-or-string").IsTrue() {
		return "integer or string"
	}
	return s.Field("type").Str()
}

func listType(s *tree.Node) string {
	if kind := s.Field("x-kubernetes-list-type").Str(); kind != "" {
		return kind
	}
	return "atomic"
}

// bounds compares numeric bounds: a minimum that rises, a maximum that falls, or a new bound.
func (n *narrowing) bounds(at *tree.Path, old, new *tree.Node) {
	for _, bound := range []struct {
		name string
		sign float64
	}{
		{"minimum", 1}, {"minLength", 1}, {"minItems", 1}, {"minProperties", 1},
		{"maximum", -1}, {"maxLength", -1}, {"maxItems", -1}, {"maxProperties", -1},
	} {
		is, ok := number(new.Field(bound.name))
		if !ok {
			continue
		}
		was, had := number(old.Field(bound.name))
		switch {
		case !had && bound.sign > 0 && is <= 0 && bound.name != "minimum":
		case !had:
			n.refuses(at, note.Warning, note.Narrowed, words.GetsBound, bound.name, is)
		case bound.sign*is > bound.sign*was:
			n.refuses(at, note.Warning, note.Narrowed, words.ChangesBound, bound.name, was, is)
		}
	}
}

func number(n *tree.Node) (float64, bool) {
	if n == nil {
		return 0, false
	}
	switch v := n.Scalar().(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// values compares the allowed values of a field: enumerations, patterns, rules.
func (n *narrowing) values(at *tree.Path, old, new *tree.Node) {
	if allowed := new.Field("enum"); allowed != nil {
		if before := old.Field("enum"); before == nil {
			n.refuses(at, note.Warning, note.Narrowed, words.OnlySome, enumerate(scalars(allowed)))
		} else if gone := gained(scalars(allowed), scalars(before)); len(gone) > 0 {
			n.refuses(at, note.Critical, note.Narrowed, words.NoLongerAllows, enumerate(gone))
		}
	}
	for _, name := range []string{"pattern", "format", "multipleOf", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "not", "allOf", "oneOf", "anyOf"} {
		is, was := new.Field(name), old.Field(name)
		if is == nil || is.Scalar() == false || was != nil && tree.Equal(was, is) || isGenerated(name, new) {
			continue
		}
		said := words.Changes
		if was == nil {
			said = words.Gets
		}
		n.refuses(at, note.Warning, note.Narrowed, said, name)
	}
	for _, rule := range gained(rulesOfSchema(old), rulesOfSchema(new)) {
		n.refuses(at, note.Warning, note.Narrowed, "gets a rule: %s", rule)
	}
}

// isGenerated reports keywords that schema generators add and that refuse no accepted value: the
// size of numbers, and the spelling of quantities.
func isGenerated(name string, s *tree.Node) bool {
	switch name {
	case "format":
		return s.Field("type").Str() != "string"
	case "anyOf":
		return s.Field("x-kubernetes-int-or-string").IsTrue()
	case "pattern":
		return schema.IsQuantityPattern(s.Field("pattern").Str())
	}
	return false
}

func scalars(list *tree.Node) []string {
	var all []string
	for _, item := range list.Items() {
		if item.Kind() == tree.Scalar {
			all = append(all, printable.Scalar(item.Scalar()))
		}
	}
	return all
}

func rulesOfSchema(s *tree.Node) []string {
	var all []string
	for _, item := range s.Field("x-kubernetes-validations").Items() {
		all = append(all, item.Field("rule").Str())
	}
	return all
}

func (n *narrowing) fields(at *tree.Path, old, new *tree.Node) {
	before, after := old.Field("properties"), new.Field("properties")
	keeps := keepsUnknown(new)
	if keepsUnknown(old) && !keeps && after != nil {
		n.refuses(at, note.Warning, note.Narrowed, "drops fields that the schema does not name")
	}
	var gone []string
	if before != nil {
		for _, property := range before.Fields() {
			still := after.Field(property.Name)
			switch {
			case still != nil:
				n.compare(at.Field(property.Name), property.Value, still)
			case !keeps:
				gone = append(gone, property.Name)
			}
		}
	}
	switch len(gone) {
	case 0:
	case 1:
		n.refuses(at.Field(gone[0]), note.Critical, note.FieldRemoved, words.FieldRemoved)
	default:
		n.refuses(at, note.Critical, note.FieldRemoved, "loses fields, and their content is dropped: %s", enumerate(gone))
	}
	for _, name := range gained(old.Field("required").Strings(), new.Field("required").Strings()) {
		severity := note.Critical
		if after.At(name, "default") != nil {
			severity = note.Info
		}
		n.refuses(at.Field(name), severity, note.Narrowed, words.NowRequired)
	}
}

// keepsUnknown reports whether an object may have undeclared fields.
func keepsUnknown(s *tree.Node) bool {
	if s.Field("x-kubernetes-preserve-unknown-fields").IsTrue() {
		return true
	}
	more := s.Field("additionalProperties")
	return more != nil && (more.Kind() == tree.Object || more.IsTrue())
}
