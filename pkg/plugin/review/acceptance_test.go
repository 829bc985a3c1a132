package review

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

func noted(notes ...string) *v1alpha1.RevisionDiff {
	diff := &v1alpha1.RevisionDiff{To: "buoy-2"}
	for _, text := range notes {
		severity, reason, _ := strings.Cut(text, "/")
		diff.Notes = append(diff.Notes, v1alpha1.DiffNote{Severity: v1alpha1.NoteSeverity(severity), Reason: reason})
	}
	return diff
}

// TestUnread: a change with critical notes is not rolled out unless they are shown or accepted by
// name.
func TestUnread(t *testing.T) {
	hidden := noted("Critical/Deletion")
	hidden.Truncated = &v1alpha1.DiffTruncation{Notes: 3}
	for name, tc := range map[string]struct {
		reason string
		accept []string
		diff   *v1alpha1.RevisionDiff
		want   string
	}{
		"none":       {"warnings do not stop a pipeline", nil, noted("Warning/Deletion", "Info/Image"), ""},
		"refused":    {"nobody has read it", nil, noted("Critical/RightsGained", "Critical/Deletion", "Critical/Deletion"), "(Deletion, RightsGained). If they are meant: --accept=Deletion,RightsGained, or --accept=critical"},
		"all":        {"a user who says critical means all", []string{"critical"}, noted("Critical/RightsGained", "Critical/Deletion"), ""},
		"named":      {"both are named", []string{"RightsGained", "Deletion"}, noted("Critical/RightsGained", "Critical/Deletion"), ""},
		"another":    {"only what is named is accepted", []string{"RightsGained"}, noted("Critical/RightsGained", "Critical/Deletion"), "(Deletion). If they are meant: --accept=RightsGained,Deletion"},
		"hidden":     {"what is left out may be critical", []string{"Deletion"}, hidden, "3 notes on buoy-2 are not shown"},
		"hidden all": {"all are accepted", []string{"critical"}, hidden, ""},
	} {
		err := (&Acceptance{accept: tc.accept}).Unread(tc.diff)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || outcome.Of(err) != outcome.No) {
			t.Errorf("%s (%s): %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

// TestFailOn: a dry-run fails for the named notes, and for parts of the diff that it cannot see.
func TestFailOn(t *testing.T) {
	changed := noted("Warning/Deletion")
	changed.Summary.Changed = 1
	withheld := noted()
	withheld.Summary.Withheld = 1
	for name, tc := range map[string]struct {
		failOn string
		diff   *v1alpha1.RevisionDiff
		want   outcome.Code
	}{
		"changes":           {"", changed, outcome.No},
		"nothing":           {"", noted(), outcome.OK},
		"critical, warning": {"critical", changed, outcome.OK},
		"warning, warning":  {"warning", changed, outcome.No},
		"warning, critical": {"warning", noted("Critical/Deletion"), outcome.No},
		"withheld":          {"critical", withheld, outcome.Unknown},
	} {
		if got := outcome.Of((&Acceptance{failOn: tc.failOn}).Verdict(tc.diff)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	for _, wrong := range []struct {
		a           Acceptance
		yes, dryRun bool
	}{{Acceptance{failOn: "info"}, false, true}, {Acceptance{failOn: "critical"}, true, false}, {Acceptance{accept: []string{"critical"}}, false, true}} {
		if outcome.Of(wrong.a.Check(wrong.yes, wrong.dryRun)) != outcome.Unknown {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	if err := (&Acceptance{failOn: "critical"}).Check(false, true); err != nil {
		t.Error(err)
	}
}
