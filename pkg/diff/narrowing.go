package diff

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

// narrowing finds what a schema accepted and no longer does.
type narrowing struct {
	version string
	stop    func() bool
	found   []refusal
	places  map[refusal][]string
}

// refusal is what a schema does at one place or many: types that are used in
// many places change in all of them.
type refusal struct {
	severity     Severity
	reason, what string
}

// refuses notes what happens at a place.
func (n *narrowing) refuses(at *path, severity Severity, reason, format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = text(s)
		}
	}
	where := at.String()
	if strings.HasPrefix(where, ".status") {
		// It is the controller's own business.
		severity = Info
	}
	found := refusal{severity, reason, fmt.Sprintf(format, args...)}
	if n.places == nil {
		n.places = make(map[refusal][]string)
	}
	if n.places[found] == nil {
		n.found = append(n.found, found)
	}
	n.places[found] = append(n.places[found], where)
}

// tell makes notes of what was found.
func (n *narrowing) tell(w *words) {
	for _, found := range n.found {
		places := n.places[found]
		if len(places) == 1 && places[0] == "" {
			w.add(found.severity, found.reason, "%s: the object %s", n.version, phrase(found.what))
			continue
		}
		w.add(found.severity, found.reason, "%s: %s %s", n.version, some(places), phrase(found.what))
	}
}

func (n *narrowing) compare(at *path, old, new *node) {
	switch {
	case n.stop() || old == nil && new == nil || old != nil && new != nil && same(old, new):
		return
	case old == nil:
		n.refuses(at, Warning, ReasonNarrowed, "gets a schema")
		return
	case new == nil:
		return
	}
	n.types(at, old, new)
	n.bounds(at, old, new)
	n.values(at, old, new)
	n.fields(at, old, new)
	if items := old.field("items"); items != nil {
		n.compare(at.append("[*]"), items, new.field("items"))
	}
	before, after := old.field("additionalProperties"), new.field("additionalProperties")
	if before != nil && before.kind == objectNode && after != nil && after.kind == objectNode {
		n.compare(at.append(".*"), before, after)
	}
}

func (n *narrowing) types(at *path, old, new *node) {
	was, is := typeOfSchema(old), typeOfSchema(new)
	widened := was == is || is == "" || is == "integer or string" && (was == "integer" || was == "string") || was == "integer" && is == "number"
	switch {
	case widened:
	case was == "" && at.parent == nil:
		// Every object is one.
	case was == "":
		n.refuses(at, Warning, ReasonNarrowed, "must be of type %s", is)
	default:
		n.refuses(at, Critical, ReasonNarrowed, "changes its type from %s to %s", was, is)
	}
	if old.field("nullable").isTrue() && !new.field("nullable").isTrue() {
		n.refuses(at, Warning, ReasonNarrowed, "may no longer be null")
	}
	if listType(old) != listType(new) && listType(new) != "atomic" {
		n.refuses(at, Warning, ReasonNarrowed, "changes its list type from %s to %s", listType(old), listType(new))
	}
}

func typeOfSchema(s *node) string {
	if s.field("x-kubernetes-int-or-string").isTrue() {
		return "integer or string"
	}
	return s.field("type").str()
}

func listType(s *node) string {
	if kind := s.field("x-kubernetes-list-type").str(); kind != "" {
		return kind
	}
	return "atomic"
}

// bounds are numbers: a minimum that rises, or a maximum that falls, or one that
// was not there.
func (n *narrowing) bounds(at *path, old, new *node) {
	for _, bound := range []struct {
		name string
		sign float64
	}{
		{"minimum", 1}, {"minLength", 1}, {"minItems", 1}, {"minProperties", 1},
		{"maximum", -1}, {"maxLength", -1}, {"maxItems", -1}, {"maxProperties", -1},
	} {
		is, ok := number(new.field(bound.name))
		if !ok {
			continue
		}
		was, had := number(old.field(bound.name))
		switch {
		case !had && bound.sign > 0 && is <= 0 && bound.name != "minimum":
		case !had:
			n.refuses(at, Warning, ReasonNarrowed, "gets %s %v", bound.name, is)
		case bound.sign*is > bound.sign*was:
			n.refuses(at, Warning, ReasonNarrowed, "changes %s from %v to %v", bound.name, was, is)
		}
	}
}

func number(n *node) (float64, bool) {
	if n == nil {
		return 0, false
	}
	switch v := n.scalar.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// values are what a field may hold: enumerations, patterns, rules.
func (n *narrowing) values(at *path, old, new *node) {
	if allowed := new.field("enum"); allowed != nil {
		if before := old.field("enum"); before == nil {
			n.refuses(at, Warning, ReasonNarrowed, "allows only some values: %s", some(scalars(allowed)))
		} else if gone := gained(scalars(allowed), scalars(before)); len(gone) > 0 {
			n.refuses(at, Critical, ReasonNarrowed, "no longer allows %s", some(gone))
		}
	}
	for _, name := range []string{"pattern", "format", "multipleOf", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "not", "allOf", "oneOf", "anyOf"} {
		is, was := new.field(name), old.field(name)
		if is == nil || is.scalar == false || was != nil && same(was, is) || saysNothing(name, new) {
			continue
		}
		verb := "changes its"
		if was == nil {
			verb = "gets"
		}
		n.refuses(at, Warning, ReasonNarrowed, "%s %s", phrase(verb), name)
	}
	for _, rule := range gained(rulesOfSchema(old), rulesOfSchema(new)) {
		n.refuses(at, Warning, ReasonNarrowed, "gets a rule: %s", rule)
	}
}

// saysNothing is of what generators of schemas add without refusing anything
// that was accepted: the size of numbers, and how quantities are spelled.
func saysNothing(name string, s *node) bool {
	switch name {
	case "format":
		return s.field("type").str() != "string"
	case "anyOf":
		return s.field("x-kubernetes-int-or-string").isTrue()
	case "pattern":
		return schema.IsQuantityPattern(s.field("pattern").str())
	}
	return false
}

func scalars(list *node) []string {
	var all []string
	for _, item := range list.list() {
		if item.kind == scalarNode {
			all = append(all, scalarJSON(item.scalar))
		}
	}
	return all
}

func rulesOfSchema(s *node) []string {
	var all []string
	for _, item := range s.field("x-kubernetes-validations").list() {
		all = append(all, item.field("rule").str())
	}
	return all
}

// fields are the properties of an object.
func (n *narrowing) fields(at *path, old, new *node) {
	before, after := old.field("properties"), new.field("properties")
	keeps := keepsUnknown(new)
	if keepsUnknown(old) && !keeps && after != nil {
		n.refuses(at, Warning, ReasonNarrowed, "drops fields that the schema does not name")
	}
	var gone []string
	if before != nil {
		for _, property := range before.fields {
			still := after.field(property.name)
			switch {
			case still != nil:
				n.compare(at.append(fieldStep(property.name)), property.node, still)
			case !keeps:
				gone = append(gone, property.name)
			}
		}
	}
	switch len(gone) {
	case 0:
	case 1:
		n.refuses(at.append(fieldStep(gone[0])), Critical, ReasonFieldRemoved, "is removed: what it holds is dropped")
	default:
		n.refuses(at, Critical, ReasonFieldRemoved, "loses fields, what they hold is dropped: %s", some(gone))
	}
	for _, name := range gained(texts(old.field("required")), texts(new.field("required"))) {
		severity := Critical
		if after.at(name, "default") != nil {
			severity = Info
		}
		n.refuses(at.append(fieldStep(name)), severity, ReasonNarrowed, "is now required")
	}
}

// keepsUnknown tells whether an object may have fields that are not named.
func keepsUnknown(s *node) bool {
	if s.field("x-kubernetes-preserve-unknown-fields").isTrue() {
		return true
	}
	more := s.field("additionalProperties")
	return more != nil && (more.kind == objectNode || more.isTrue())
}
