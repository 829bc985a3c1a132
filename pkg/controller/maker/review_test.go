package maker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/note"
)

// noted returns a diff with notes, given as SEVERITY/REASON.
func noted(notes ...string) *olmv1alpha1.RevisionDiff {
	diff := &olmv1alpha1.RevisionDiff{}
	for _, one := range notes {
		severity, reason, _ := strings.Cut(one, "/")
		diff.Notes = append(diff.Notes, olmv1alpha1.DiffNote{Severity: olmv1alpha1.NoteSeverity(severity), Reason: reason, Kind: "Role", Name: "r", Message: "m"})
	}
	return diff
}

func TestHoldsDiff(t *testing.T) {
	on := func(list string) *Review {
		parsed, err := note.ParseHoldOn(note.SplitHoldOn(list))
		if err != nil {
			t.Fatal(err)
		}
		return (&Chain{}).NewReview(parsed, "Reviewed")
	}
	truncated := func(left olmv1alpha1.DiffTruncation) *olmv1alpha1.RevisionDiff {
		return &olmv1alpha1.RevisionDiff{Truncated: &left}
	}
	withheld := noted()
	withheld.Summary.Withheld = 1
	for _, tc := range map[string]struct {
		reason string
		list   string
		diff   *olmv1alpha1.RevisionDiff
		want   []string
	}{
		"Nothing":     {"no notes", "", noted(), nil},
		"Info":        {"it is good to know", "", noted("Info/RightsGained", "Info/Deleted"), nil},
		"Warning":     {"it deserves a look", "", noted("Warning/RightsGained", "Warning/Deleted", "Critical/Deleted"), []string{"RightsGained", "Deleted"}},
		"NotListed":   {"its reason holds nothing by default", "", noted("Critical/Immutable"), nil},
		"Widened":     {"the list has it", "Immutable", noted("Critical/Immutable"), []string{"Immutable"}},
		"Narrowed":    {"the list does not have it", "Immutable", noted("Critical/Deleted"), nil},
		"Plain":       {"the list says so", "RightsGained:Info", noted("Info/RightsGained"), []string{"RightsGained"}},
		"Objects":     {"some were not compared", "Immutable", truncated(olmv1alpha1.DiffTruncation{Objects: 1}), []string{"Incomplete"}},
		"Notes":       {"some are left out", "", truncated(olmv1alpha1.DiffTruncation{Notes: 1}), []string{"Incomplete"}},
		"Withheld":    {"some are not shown", "", withheld, []string{"Incomplete"}},
		"OnlyLines":   {"the notes are complete all the same", "", truncated(olmv1alpha1.DiffTruncation{Lines: 1, Fields: 1, Values: 1}), nil},
		"NotReviewed": {"somebody chose it", "", nil, nil},
	} {
		reasons, lines := on(tc.list).holds(tc.diff)
		if !slices.Equal(reasons, tc.want) || (len(lines) > 0) != (len(reasons) > 0) {
			t.Errorf("%s: held by %v (%q), want %v", tc.reason, reasons, lines, tc.want)
		}
	}
	if _, lines := on("").holds(noted("Warning/Image", "Warning/Image", "Warning/Image", "Warning/Image", "Warning/Image")); len(lines) != maxNotes+1 || lines[maxNotes] != "2 more notes" {
		t.Errorf("many notes are %q", lines)
	}
}

// TestHoldsAll: an upgrade is automatic only if none of its notes holds, and a longer list holds at
// least as much.
func TestHoldsAll(t *testing.T) {
	reasons, severities := note.Reasons(), note.Severities()
	if err := quick.Check(func(notes []uint16, list uint32, more uint8) bool {
		var written []string
		on := note.HoldOn{note.Incomplete: note.Warning}
		for i, reason := range reasons {
			if list&(1<<i) != 0 {
				on[reason.Name] = severities[int(list>>i)%len(severities)]
			}
		}
		longer := note.HoldOn{reasons[int(more)%len(reasons)].Name: note.Info}
		for reason, severity := range on {
			if longer[reason] == "" {
				longer[reason] = severity
			}
		}
		holds := false
		for _, one := range notes {
			reason, severity := reasons[int(one)%len(reasons)].Name, severities[int(one>>8)%len(severities)]
			written = append(written, fmt.Sprintf("%s/%s", severity, reason))
			holds = holds || on.Holds(reason, severity)
		}
		chain := &Chain{}
		alone := Identity{Review: chain.NewReview(on, "Reviewed")}.reviewed(noted(written...))
		with := Identity{Review: chain.NewReview(longer, "Reviewed")}.reviewed(noted(written...))
		return (alone.Approval != "") == holds && (!holds || with.Approval != "") && (alone.held != "") == holds
	}, nil); err != nil {
		t.Error(err)
	}
}

// TestHeldAlready: a held version is not rendered again until the list or the rolled out revision
// changes.
func TestHeldAlready(t *testing.T) {
	const active, paused = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused
	installed, waits := revision("lamp-1", "before", active), revision("lamp-2", "now", paused)
	installed.UID, waits.Annotations["proposed"] = "one", "true"
	chain := chainOf(waits, installed)
	under := func(on note.HoldOn, chain *Chain) Identity { return Identity{Review: chain.NewReview(on, "Reviewed")} }
	waits.Annotations[olmv1alpha1.HeldUnderAnnotation] = under(note.DefaultHoldOn(), chain).Review.under
	replaced := installed
	replaced.UID = "other"
	for name, tc := range map[string]struct {
		chain  *Chain
		digest string
		on     note.HoldOn
		held   bool
	}{
		"Same":          {chain, "now", note.DefaultHoldOn(), true},
		"OtherContent":  {chain, "later", note.DefaultHoldOn(), false},
		"OtherList":     {chain, "now", note.HoldOn{note.Deleted: note.Warning}, false},
		"OtherRevision": {chainOf(waits, replaced), "now", note.DefaultHoldOn(), false},
		"ByHand":        {chainOf(revision("lamp-2", "now", paused), installed), "now", note.DefaultHoldOn(), false},
	} {
		outcome := tc.chain.heldAlready(t.Context(), tc.digest, under(tc.on, tc.chain))
		if (outcome != nil) != tc.held || outcome != nil && outcome.Reason != Proposed {
			t.Errorf("%s: %+v", name, outcome)
		}
	}
}

// TestHeldAnew: a proposal shows the present reason of its hold. A declined proposal is not
// compared again.
func TestHeldAnew(t *testing.T) {
	const active, paused, archived = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused, olmv1alpha1.LifecycleStateArchived
	under := (&Chain{}).NewReview(note.DefaultHoldOn(), "Reviewed").under
	proposed := func(state olmv1alpha1.LifecycleState, digest, under string) olmv1alpha1.ClusterExtensionRevision {
		one := revision("lamp-2", digest, state)
		one.ResourceVersion, one.Annotations["proposed"], one.Annotations["stamp"], one.Annotations[olmv1alpha1.HeldUnderAnnotation] = "7", "true", "mine", under
		return one
	}
	for name, tc := range map[string]struct {
		reason string
		one    olmv1alpha1.ClusterExtensionRevision
		stamp  string
		held   string
		want   string
	}{
		"Other":    {"the list is another one", proposed(paused, "now", "former"), "mine", note.Deleted, `{"annotations":{"penstock.dev/held-by":"Deleted","penstock.dev/held-under":"` + under + `","penstock.dev/lifecycle-reason":"because"},"resourceVersion":"7","uid":""}`},
		"ByHand":   {"the policy is another one", proposed(paused, "now", "former"), "mine", "", `{"annotations":{"penstock.dev/held-by":null,"penstock.dev/held-under":null,"penstock.dev/lifecycle-reason":"because"},"resourceVersion":"7","uid":""}`},
		"Same":     {"it says so already", proposed(paused, "now", under), "mine", note.Deleted, ""},
		"Proposed": {"it was not held before either", proposed(paused, "now", ""), "mine", "", ""},
		"Content":  {"it is of something else", proposed(paused, "before", "former"), "mine", note.Deleted, ""},
		"Declined": {"its reasons stay", proposed(archived, "now", "former"), "mine", note.Deleted, `{"annotations":{"penstock.dev/held-under":"` + under + `"},"resourceVersion":"7","uid":""}`},
		"Asked":    {"what was declined is asked for once more", proposed(archived, "now", "former"), "later", note.Deleted, ""},
		"Approved": {"it is rolled out", revision("lamp-2", "now", active), "mine", note.Deleted, ""},
	} {
		var written []string
		chain := chainOf(tc.one)
		chain.Stamp, chain.Own = "stamp", store{written: &written}
		identity := Identity{Stamp: tc.stamp, Approval: "because", held: tc.held, Review: (&Chain{}).NewReview(note.DefaultHoldOn(), "Reviewed")}
		if stopped := chain.heldAnew(t.Context(), "now", identity); stopped != nil {
			t.Errorf("%s: %s", name, stopped.Message)
		}
		if got := strings.Join(written, ", "); tc.want == "" && got != "" || tc.want != "" && got != `{"metadata":`+tc.want+"}" {
			t.Errorf("%s: %s: wrote %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

type comparing struct {
	Revisions
	diff *olmv1alpha1.RevisionDiff
}

func (c comparing) Propose(context.Context, string, *olmv1alpha1.ClusterExtensionRevision, metav1.CreateOptions) (*olmv1alpha1.RevisionDiff, error) {
	return c.diff, nil
}

// TestCompare: an upgrade that is compared with an unapproved proposal is held.
func TestCompare(t *testing.T) {
	installed, waits := revision("lamp-1", "before", olmv1alpha1.LifecycleStatePaused), revision("lamp-2", "now", olmv1alpha1.LifecycleStatePaused)
	waits.Annotations["proposed"] = "true"
	for from, held := range map[string]bool{"lamp-1": false, "lamp-2": true, "": false} {
		chain := chainOf(waits, installed)
		chain.Own = comparing{diff: &olmv1alpha1.RevisionDiff{From: from}}
		next := revision("lamp-3", "later", olmv1alpha1.LifecycleStateActive)
		diff, stopped := chain.Compare(t.Context(), &next)
		if stopped != nil {
			t.Fatal(stopped.Message)
		}
		if reasons, _ := chain.NewReview(note.DefaultHoldOn(), "Reviewed").holds(diff); (len(reasons) > 0) != held {
			t.Errorf("against %q it is held by %v", from, reasons)
		}
	}
}
