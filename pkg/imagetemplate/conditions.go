package imagetemplate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	AllResolved     = "AllTemplatesResolved"
	UnableToResolve = "UnableToResolve"
)

// Types are the types of an annotation's two conditions.
type Types struct {
	// Resolved is the type of the condition that reports whether all variables have values. It
	// names the variables that have no value.
	Resolved string
	// Image is the type of the condition with the resulting image.
	Image string
}

// Conditions returns the conditions for the result of a template, without times.
func (t *Template) Conditions(types Types, result Result) []metav1.Condition {
	if result.Image != "" {
		return []metav1.Condition{
			{Type: types.Resolved, Status: metav1.ConditionTrue, Reason: AllResolved, Message: "catalog image reference was successfully resolved"},
			{Type: types.Image, Status: metav1.ConditionTrue, Reason: AllResolved, Message: result.Image},
		}
	}
	var causes []string
	if len(result.Unresolved) > 0 {
		causes = append(causes, fmt.Sprintf(`variable(s) "%s" couldn't be resolved`, strings.Join(result.Unresolved, `", "`)))
	}
	if result.Malformed {
		causes = append(causes, "one or more template(s) has improper syntax")
	}
	return t.Failed(types, strings.Join(causes, " and "))
}

// Failed returns the conditions of a template without a result.
func (t *Template) Failed(types Types, cause string) []metav1.Condition {
	shown := t.Text
	if len(shown) > MaxLength {
		// A message is limited to 32 KiB, and an annotation can have 256 KiB.
		shown = fmt.Sprintf("(a template of %d bytes, at most %d are read)", len(shown), MaxLength)
	}
	return []metav1.Condition{
		{Type: types.Resolved, Status: metav1.ConditionFalse, Reason: UnableToResolve, Message: "Cannot construct catalog image reference, " + cause},
		{Type: types.Image, Status: metav1.ConditionFalse, Reason: UnableToResolve, Message: shown},
	}
}

// Merge merges conditions into an object's conditions by the rules of the design. It changes
// existing conditions in place, appends new ones, and keeps conditions of other owners. An
// unchanged condition keeps its time. Merge returns a new list, and whether the list has changed.
func Merge(all []any, own []metav1.Condition, now time.Time) ([]any, bool) {
	merged, changed := slices.Clone(all), false
	for _, condition := range own {
		i := slices.IndexFunc(merged, isOfType(condition.Type))
		if i < 0 {
			merged, changed = append(merged, entry(condition, now.UTC().Format(time.RFC3339))), true
			continue
		}
		was := merged[i].(map[string]any)
		if was["status"] == string(condition.Status) && was["reason"] == condition.Reason && was["message"] == condition.Message {
			continue
		}
		since, isText := was["lastTransitionTime"].(string)
		if was["status"] != string(condition.Status) || !isText {
			since = now.UTC().Format(time.RFC3339)
		}
		merged[i], changed = entry(condition, since), true
	}
	return merged, changed
}

// Without removes conditions by type. It returns a new list, and whether the list has changed.
func Without(all []any, types ...string) ([]any, bool) {
	rest := slices.DeleteFunc(slices.Clone(all), func(one any) bool {
		return slices.ContainsFunc(types, func(t string) bool { return isOfType(t)(one) })
	})
	return rest, len(rest) != len(all)
}

// isOfType returns a function that matches conditions of a type. Other writers can put any value
// into the list.
func isOfType(conditionType string) func(any) bool {
	return func(one any) bool {
		condition, is := one.(map[string]any)
		return is && condition["type"] == conditionType
	}
}

func entry(c metav1.Condition, since string) map[string]any {
	return map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message, "lastTransitionTime": since}
}
