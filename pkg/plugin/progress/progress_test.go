package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// TestPlanWaits: a plan that waits for its window shows the time, also between two items.
func TestPlanWaits(t *testing.T) {
	for _, phase := range []hcov1alpha1.Phase{hcov1alpha1.PhaseScheduled, hcov1alpha1.PhaseInProgress} {
		plan := &hcov1alpha1.ConfigurationPlan{}
		plan.Name, plan.Status.Phase, plan.Status.Message = "a", phase, "its window opens at noon"
		if got := PlanLines(plan)[0].Text; got != "a: "+string(phase) {
			t.Errorf("%s: %q", phase, got)
		}
		plan.Status.Conditions = []metav1.Condition{{Type: hcov1alpha1.ConditionReady, Reason: "WaitingForWindow"}}
		if got := PlanLines(plan)[0].Text; got != "a: "+string(phase)+", its window opens at noon" {
			t.Errorf("%s: %q", phase, got)
		}
	}
}

// TestLog: without a terminal each new line is printed once, with the time. A minute without a new
// line gets a line, too.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourAuto, func(string) string { return "" })
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	view := NewView(s, began)
	lines := []screen.Line{{Glyph: screen.Working, Text: "a-1"}, {Glyph: screen.Waiting, Indent: 2, Text: "later"}}
	view.Show(lines, began)
	view.Show(lines, after(1))
	view.Beat(lines, after(59))
	view.Beat(lines, after(60))
	view.Beat(lines, after(90))
	view.Show([]screen.Line{{Glyph: screen.Good, Text: "a-1"}, {Glyph: screen.Good, Indent: 2, Text: "later"}}, after(125))
	want := "    0s  ◎ a-1\n 1m00s  · still a-1\n 2m05s  ✓ a-1\n 2m05s    ✓ later\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestElapsed(t *testing.T) {
	var all []string
	for _, d := range []time.Duration{400 * time.Millisecond, 59 * time.Second, 65 * time.Second, 3 * time.Hour} {
		all = append(all, Elapsed(d))
	}
	if got := strings.Join(all, " "); got != "0s 59s 1m05s 3h00m" {
		t.Error(got)
	}
}
