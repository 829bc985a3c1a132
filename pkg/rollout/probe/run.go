package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

// job is ready when it is complete: a user who puts a Job into a phase wants it to finish before
// the next phase. (kstatus counts a running Job as ready.)
func job(v *view) Verdict {
	conditions := v.conditions()
	is := func(kind string) (string, bool) {
		c, _ := find(conditions, kind)
		return c.because(), c.status == "True"
	}
	if _, complete := is("Complete"); complete {
		return pass()
	}
	for _, end := range []struct{ kind, says string }{
		{"Failed", "failed"},
		// Set when the outcome is certain, while pods still terminate.
		{"FailureTarget", "is failing"},
		{"Suspended", "is suspended (spec.suspend)"},
	} {
		if because, happened := is(end.kind); happened {
			return failing("%s", sentence(end.says, because))
		}
	}
	parts := []string{"not complete"}
	for _, pods := range []struct{ field, says string }{
		{"active", "running"}, {"succeeded", "succeeded"}, {"failed", "failed"},
	} {
		if n := v.number(0, "status", pods.field); n > 0 {
			parts = append(parts, text.Count(n, "pod")+" "+pods.says)
		}
	}
	return failing("%s", strings.Join(parts, ", "))
}

// pod is ready when its Ready condition is true, or when it has succeeded.
func pod(v *view) Verdict {
	phase := v.text("status", "phase")
	because := condition{reason: v.text("status", "reason"), message: v.text("status", "message")}.because()
	verdict := ConditionEqual{Type: "Ready", Status: "True"}.judge(v)
	waiting := waitingContainers(v)
	scheduled, _ := find(v.conditions(), "PodScheduled")

	switch {
	case phase == "Succeeded":
		return pass()
	case phase == "Failed":
		return failing("%s", sentence("failed", because))
	case scheduled.status == "False":
		// An unscheduled pod has no Ready condition yet.
		return failing("%s", sentence("not scheduled", scheduled.because()))
	case verdict.Status != False:
		return verdict
	}
	return failing("%s", sentence(verdict.Message, waiting))
}

// waitingContainers returns the reasons why containers do not run: "container a: CrashLoopBackOff".
// It omits their messages, which count back-off seconds.
func waitingContainers(v *view) string {
	var parts []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, container := range v.objects("status", list) {
			name := container.text("name")
			reason := container.text("state", "waiting", "reason")
			v.adopt(container, "status."+list)
			if reason == "ErrImagePull" {
				// The kubelet alternates between these two reasons.
				reason = "ImagePullBackOff"
			}
			if reason != "" {
				parts = append(parts, fmt.Sprintf("container %s: %s", quote(name), quote(reason)))
			}
		}
	}
	slices.SortFunc(parts, cmp.Compare)
	return sentence(parts...)
}
