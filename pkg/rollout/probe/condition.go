package probe

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/text"
)

type condition struct {
	kind       string
	status     string
	generation int64
	reason     string
	message    string
}

// because returns the condition's explanation, "Reason: message", without empty parts.
func (c condition) because() string {
	switch {
	case c.reason == "":
		return quote(c.message)
	case c.message == "":
		return quote(c.reason)
	}
	return quote(c.reason + ": " + c.message)
}

// conditions reads status.conditions, sorted by type. If an object has a type twice, the first
// condition counts.
func (v *view) conditions() []condition {
	var conditions []condition
	for _, element := range v.objects("status", "conditions") {
		c := condition{
			kind:       element.text("type"),
			status:     element.text("status"),
			generation: element.number(0, "observedGeneration"),
			reason:     element.text("reason"),
			message:    element.text("message"),
		}
		v.adopt(element, "status.conditions")
		conditions = append(conditions, c)
	}
	slices.SortStableFunc(conditions, func(a, b condition) int { return cmp.Compare(a.kind, b.kind) })
	return conditions
}

func find(conditions []condition, kind string) (condition, bool) {
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.kind == kind })
	if i < 0 {
		return condition{}, false
	}
	return conditions[i], true
}

// explain joins the explanations of the conditions with the given types and statuses, sorted by
// type.
func explain(conditions []condition, wanted map[string]string) string {
	var parts []string
	for _, c := range conditions {
		if status, known := wanted[c.kind]; known && status == c.status {
			parts = append(parts, c.because())
		}
	}
	return sentence(parts...)
}

// judge requires the condition to have the status, and to be of the newest generation, according to
// its own observedGeneration or that of the status. Otherwise a Ready condition of the previous
// spec would pass a phase at once. A kind without observedGeneration is trusted.
func (c ConditionEqual) judge(v *view) Verdict {
	generation := v.number(0, "metadata", "generation")
	seen := v.number(0, "status", "observedGeneration")
	found, exists := find(v.conditions(), c.Type)
	if found.generation != 0 {
		seen = found.generation
	}
	switch {
	case !exists:
		return unknown("has no condition %s yet", c.Type)
	case seen != 0 && seen < generation:
		return unknown("condition %s is of generation %d, the object of %d", c.Type, seen, generation)
	case found.status != c.Status:
		is := fmt.Sprintf("condition %s is %s, want %s", c.Type, text.Clip(clean(found.status), maxValueBytes), c.Status)
		return failing("%s", sentence(is, found.because()))
	}
	return pass()
}

func (c ConditionEqual) reads() Reads {
	return Reads{Fields: [][]string{{"status", "conditions"}, {"status", "observedGeneration"}}}
}
