package review

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// acceptCritical accepts every critical note.
const acceptCritical = "critical"

// Acceptance has the flags for notes without a review: the notes that --yes accepts, and the notes
// that make a dry-run fail.
type Acceptance struct {
	accept []string
	failOn string
}

// AddFlags adds --accept, and --fail-on for commands with a dry-run.
func (a *Acceptance) AddFlags(flags *pflag.FlagSet, dryRun bool) {
	flags.StringSliceVar(&a.accept, "accept", nil, "With --yes: accept critical notes. Use critical for all, or their reasons, such as RightsGained. Otherwise --yes refuses them.")
	if dryRun {
		flags.StringVar(&a.failOn, "fail-on", "", "With --dry-run: exit with 1 only when there is a note of this severity or above: critical or warning.")
	}
}

// Check refuses invalid values, and flags without an effect.
func (a *Acceptance) Check(yes, dryRun bool) error {
	switch {
	case len(a.accept) > 0 && !yes:
		return outcome.Errorf(outcome.Unknown, "--accept is for --yes: without --yes you read the notes, and are asked")
	case a.failOn == "":
		return nil
	case !dryRun:
		return outcome.Errorf(outcome.Unknown, "--fail-on is for --dry-run")
	case a.failing() == nil:
		return outcome.Errorf(outcome.Unknown, "--fail-on %q: want critical or warning", a.failOn)
	}
	return nil
}

// failing returns the severities that --fail-on names; nil for an invalid value.
func (a *Acceptance) failing() []v1alpha1.NoteSeverity {
	switch a.failOn {
	case "critical":
		return []v1alpha1.NoteSeverity{v1alpha1.NoteCritical}
	case "warning":
		return []v1alpha1.NoteSeverity{v1alpha1.NoteCritical, v1alpha1.NoteWarning}
	default:
		return nil
	}
}

// Unread returns an error for critical notes that the user has not accepted. Omitted notes count as
// critical.
func (a *Acceptance) Unread(diff *v1alpha1.RevisionDiff) error {
	if slices.Contains(a.accept, acceptCritical) {
		return nil
	}
	if diff.Truncated != nil && diff.Truncated.Notes > 0 {
		return outcome.Errorf(outcome.No, "%d notes on %s are not shown, and --yes refuses critical ones: --accept=%s accepts all", diff.Truncated.Notes, diff.To, acceptCritical)
	}
	critical := of(diff.Notes, []v1alpha1.NoteSeverity{v1alpha1.NoteCritical})
	var reasons []string
	for _, note := range critical {
		if !slices.Contains(a.accept, note.Reason) && !slices.Contains(reasons, note.Reason) {
			reasons = append(reasons, note.Reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	slices.Sort(reasons)
	return outcome.Errorf(outcome.No, "%s has critical notes, which --yes refuses (%s). If they are meant: --accept=%s, or --accept=%s for every critical note",
		diff.To, strings.Join(reasons, ", "), strings.Join(slices.Compact(append(slices.Clone(a.accept), reasons...)), ","), acceptCritical)
}

// Verdict returns the outcome of a dry-run, by --fail-on. Without this flag it returns the function
// Verdict's outcome.
func (a *Acceptance) Verdict(diff *v1alpha1.RevisionDiff) error {
	if a.failOn == "" {
		return Verdict(diff)
	}
	return a.Failed(diff)
}

// Failed returns the error of --fail-on; nil without the flag.
func (a *Acceptance) Failed(diff *v1alpha1.RevisionDiff) error {
	severities := a.failing()
	if severities == nil {
		return nil
	}
	if found := of(diff.Notes, severities); len(found) > 0 {
		return outcome.Errorf(outcome.No, "%s has notes of severity %s or above: %d", diff.To, a.failOn, len(found))
	}
	if diff.Summary.Withheld > 0 || diff.Truncated != nil && diff.Truncated.Notes+diff.Truncated.Objects > 0 {
		return outcome.Errorf(outcome.Unknown, "no shown note of %s has severity %s or above; what is not shown is unknown", diff.To, a.failOn)
	}
	return nil
}

func of(notes []v1alpha1.DiffNote, severities []v1alpha1.NoteSeverity) []v1alpha1.DiffNote {
	return slices.DeleteFunc(slices.Clone(notes), func(note v1alpha1.DiffNote) bool { return !slices.Contains(severities, note.Severity) })
}
