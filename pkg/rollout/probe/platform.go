package probe

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/text"
)

// namespace is ready while it is Active.
func namespace(v *view) Verdict {
	switch phase := v.text("status", "phase"); phase {
	case "Active":
		return pass()
	case "":
		return unknown("its status has no phase yet")
	default:
		why := explain(v.conditions(), map[string]string{
			"NamespaceDeletionDiscoveryFailure":           "True",
			"NamespaceDeletionContentFailure":             "True",
			"NamespaceDeletionGroupVersionParsingFailure": "True",
			"NamespaceContentRemaining":                   "True",
			"NamespaceFinalizersRemaining":                "True",
		})
		return failing("%s", sentence("its phase is "+text.Clip(clean(phase), maxValueBytes)+", want Active", why))
	}
}

// definition is ready when its resources are served under the requested names. It ignores
// observedGeneration: no controller of the API server sets it (apiextensions-apiserver at 1.36 and
// 1.37), so another writer's old value would block a phase forever.
func definition(v *view) Verdict {
	return and([]Verdict{
		conditionTrue(v, "NamesAccepted"),
		conditionTrue(v, "Established"),
	})
}

// apiService is ready when its server answers. Its condition has no generation.
func apiService(v *view) Verdict {
	return conditionTrue(v, "Available")
}

func conditionTrue(v *view, kind string) Verdict {
	c, exists := find(v.conditions(), kind)
	switch {
	case !exists:
		return unknown("has no condition %s yet", kind)
	case c.status != "True":
		is := fmt.Sprintf("condition %s is %s", kind, text.Clip(clean(c.status), maxValueBytes))
		return failing("%s", sentence(is, c.because()))
	}
	return pass()
}
