package extensions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/upgrades"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// upgrading is one run of upgrade, or the last part of a run of install.
type upgrading struct {
	*session.Session
	cluster *session.Cluster
	name    string
	version string
	// yes approves a proposal without asking. unasked leaves the proposal unapproved, and does not
	// ask.
	yes, unasked, dryRun, stat bool
	// when is now or window. If it is empty, the command asks outside of a window.
	when       string
	acceptance review.Acceptance
	timeout    time.Duration
	output     session.Format
}

// NewUpgrade returns the command that approves a proposal or requests another version.
func NewUpgrade(s *session.Session) *cobra.Command {
	u := &upgrading{Session: s}
	command := &cobra.Command{
		Use:   "upgrade EXTENSION",
		Short: "Approve a proposed version, or ask for another one",
		Long: "Show what the proposed revision of a ClusterExtension changes, ask, and approve it in your name: you need the\n" +
			"rights for all that it does. Only what was shown is approved; when something else is rolled out meanwhile,\n" +
			"nothing happens (exit code 3). Outside of a maintenance window the command asks whether it begins now, or when the\n" +
			"window opens: until then the approval can be withdrawn, and it ends when the proposal changes. With --version the command first changes the range of versions in the spec, in your name,\n" +
			"and follows the result; when that waits for approval, it is shown and approved. kubectl penstock upgrades lists the\n" +
			"versions.",
		Example: "  kubectl penstock upgrade lighthouse\n" +
			"  kubectl penstock upgrade lighthouse --dry-run\n" +
			"  kubectl penstock upgrade lighthouse --version 1.1.0 --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.Complete(extensionObjects(s)),
		RunE: func(command *cobra.Command, args []string) error {
			u.name = args[0]
			if err := u.acceptance.Check(u.yes, u.dryRun); err != nil {
				return err
			}
			if u.when != "" && u.when != whenNow && u.when != whenWindow {
				return outcome.Errorf(outcome.Unknown, "--when %q: want %s or %s", u.when, whenNow, whenWindow)
			}
			if !u.yes && !u.dryRun && !s.Person() {
				return outcome.Errorf(outcome.Unknown, "there is no terminal to ask on: --yes upgrades without asking, --dry-run only shows what changes")
			}
			var err error
			if u.cluster, err = s.Connect(); err != nil {
				return err
			}
			return u.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&u.version, "version", "", "Range of versions to ask for, such as 1.4.2 or >=1.4 <2.")
	flags.BoolVar(&u.yes, "yes", false, "Do not ask.")
	flags.StringVar(&u.when, "when", "", "Outside of a maintenance window: now, or window to begin when upgrades may begin. Without it the command asks; with --yes it is now.")
	flags.BoolVar(&u.dryRun, "dry-run", false, "Only show what changes. Exit code as for diff.")
	u.acceptance.AddFlags(flags, true)
	flags.BoolVar(&u.stat, "stat", false, "Show the diff without the lines.")
	flags.DurationVar(&u.timeout, "timeout", review.Patience, "Stop following after this time, with exit code 124; the upgrade continues. 0 is no limit.")
	u.output.Add(flags)
	return command
}

func (u *upgrading) run(ctx context.Context) error {
	read, err := getExtension(ctx, u.cluster, u.name)
	if err != nil {
		return err
	}
	if u.version != "" {
		return u.changeVersion(ctx, read)
	}
	waiting, err := u.waiting(ctx)
	if err != nil {
		return err
	}
	if waiting != nil {
		return u.approve(ctx, waiting)
	}
	said := "nothing is proposed"
	found := (followed{extension: read}).condition(status.UpgradeAvailable)
	if found != nil && status.Waits(found.Reason) {
		return u.beginNow(ctx, read, *found)
	}
	if found != nil && found.Message != "" {
		said += ": " + found.Message
	}
	u.Err.Para(screen.Dim, screen.Waiting, said+"; --version asks for another one")
	return nil
}

// waiting returns the proposal; nil if there is none.
func (u *upgrading) waiting(ctx context.Context) (*v1alpha1.ClusterExtensionRevision, error) {
	found, err := u.cluster.Find(ctx, u.name)
	if session.IsUnknownName(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if newest := found.Newest(); proposed(newest) {
		return newest, nil
	}
	return nil, nil
}

// beginNow offers to start an upgrade that waits for a maintenance window or for the installed
// operator. If the user agrees, the command writes the extension as the user: an upgrade that a
// user requests waits for neither.
func (u *upgrading) beginNow(ctx context.Context, read *extension.Extension, waits metav1.Condition) error {
	u.Out.Para("", screen.Waiting, waits.Message)
	question, later := "Begin now, in your name, outside of the window?", "it begins by itself when the window opens"
	if waits.Reason == string(status.NotUpgradeable) {
		question, later = "Begin now, in your name, although the operator says that it cannot be upgraded?", "it begins by itself when the operator can be upgraded"
	}
	if u.dryRun {
		return outcome.Quiet(outcome.No)
	}
	if !u.yes {
		agreed, err := u.Confirm(ctx, question)
		if err != nil || !agreed {
			return u.declined(err, later)
		}
	}
	if err := takeOver(ctx, u.cluster, read); err != nil {
		return err
	}
	return u.follow(ctx)
}

// The values of --when.
const (
	whenNow    = "now"
	whenWindow = "window"
)

// begins asks when an approved proposal begins; zero means now. Without the right to read windows,
// it returns now without a question: a user's own write waits for no window.
func (u *upgrading) begins(ctx context.Context, question string) (notBefore time.Time, agreed bool, err error) {
	decision := upgrades.Window(ctx, u.cluster.Host, u.name)
	if decision == nil && u.when == whenWindow {
		return notBefore, false, outcome.Errorf(outcome.Unknown, "--when=%s needs the right to list MaintenanceWindows and to get ClusterExtension %s", whenWindow, u.name)
	}
	if decision == nil || decision.Open {
		if u.yes {
			return notBefore, true, nil
		}
		agreed, err = u.Confirm(ctx, question)
		return notBefore, agreed, err
	}
	u.Err.Para(screen.Yellow, screen.Notice, decision.String())
	if u.when == whenWindow && decision.Opens.IsZero() {
		return notBefore, false, outcome.Errorf(outcome.No, "it is not known when an upgrade of %s may begin: --when=%s begins it now", u.name, whenNow)
	}
	when := strings.TrimSuffix(question, "?") + ", when upgrades may begin, not before " + decision.Opens.UTC().Format(time.RFC3339) + "?"
	switch {
	case u.yes && u.when == whenWindow:
		return decision.Opens, true, nil
	case u.yes:
		return notBefore, true, nil
	case u.when != whenWindow:
		if agreed, err = u.Confirm(ctx, strings.TrimSuffix(question, "?")+", now, outside of the window?"); err != nil || agreed || u.when == whenNow || decision.Opens.IsZero() {
			return notBefore, agreed, err
		}
	}
	agreed, err = u.Confirm(ctx, when)
	return decision.Opens, agreed, err
}

// approveLater approves a proposal for the time when upgrades may begin.
func (u *upgrading) approveLater(ctx context.Context, waiting *v1alpha1.ClusterExtensionRevision, answers map[string]any, notBefore time.Time) error {
	delete(answers, v1alpha1.LifecycleReasonAnnotation) // it still waits for its reason
	answers[v1alpha1.ApproveNotBeforeAnnotation] = notBefore.UTC().Format(time.RFC3339)
	if _, err := review.SetState(ctx, u.cluster, waiting, v1alpha1.LifecycleStatePaused, answers); err != nil {
		return refusedApproval(err)
	}
	u.Err.Para(screen.Green, screen.Good, fmt.Sprintf("%s is approved, and begins when a maintenance window lets it, not before %s; kubectl annotate cer %[1]s %[3]s- withdraws that",
		waiting.Name, notBefore.UTC().Format(time.RFC3339), v1alpha1.ApproveNotBeforeAnnotation))
	return u.done(ctx)
}

// refusedApproval turns a conflict into an outcome that asks to run the command again. It returns
// other errors unchanged.
func refusedApproval(err error) error {
	if stale(err) {
		return outcome.Errorf(outcome.Conflict, "%w\nrun the command again", err)
	}
	return err
}

// changeVersion changes the version range, and follows the result.
func (u *upgrading) changeVersion(ctx context.Context, read *extension.Extension) error {
	source := read.Spec.Source.Catalog
	if source == nil {
		return outcome.Errorf(outcome.No, "ClusterExtension %s is not from a catalog: spec.source.sourceType is %s", u.name, read.Spec.Source.SourceType)
	}
	if source.Version == u.version {
		u.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("%s asks for version %s already", u.name, u.version))
	} else {
		if err := askForVersion(ctx, u.cluster, read, u.version, true); err != nil {
			return err
		}
		was := source.Version
		if was == "" {
			was = "any version"
		}
		u.Out.Para(screen.Bold, "", fmt.Sprintf("%s: spec.source.catalog.version: %s → %s", u.name, was, u.version))
		if u.dryRun {
			return outcome.Quiet(outcome.No)
		}
		if !u.yes {
			agreed, err := u.Confirm(ctx, fmt.Sprintf("Ask for version %s of %s?", u.version, source.PackageName))
			if err != nil || !agreed {
				return u.declined(err, "nothing was changed")
			}
		}
		if err := askForVersion(ctx, u.cluster, read, u.version, false); err != nil {
			return err
		}
	}
	if u.dryRun {
		return nil
	}
	return u.follow(ctx)
}

// follow shows the result of the spec, and asks for an approval if it needs one.
func (u *upgrading) follow(ctx context.Context) error {
	following, cancel := session.Within(ctx, u.timeout)
	defer cancel()
	waiting, err := followExtension(following, u.Session, u.cluster, u.name)
	switch outcome.Of(err) {
	case outcome.TimedOut, outcome.Interrupted:
		u.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%s continues by itself: kubectl describe clusterextension %s and kubectl penstock status %s -w follow it", u.name, u.name, u.name))
	}
	if err != nil {
		return err
	}
	if waiting == nil {
		return u.done(ctx)
	}
	if u.unasked {
		u.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%s is proposed and waits for approval: kubectl penstock upgrade %s", waiting.Name, u.name))
		return u.done(ctx)
	}
	return u.approve(ctx, waiting)
}

// approve shows the changes of a proposal, and approves it when the user agrees.
func (u *upgrading) approve(ctx context.Context, waiting *v1alpha1.ClusterExtensionRevision) error {
	diff, _, err := review.Proposal(ctx, u.cluster, u.name, waiting)
	if err != nil {
		return err
	}
	if found, err := u.cluster.Find(ctx, waiting.Name); err == nil {
		if earlier := found.Before(waiting); earlier != nil {
			review.SayDowngrade(u.Err, earlier, waiting)
		}
	}
	if u.output != "" && u.dryRun {
		if err := changes.Write(u.Session, u.output, diff, changes.View{Lines: !u.stat}); err != nil {
			return err
		}
		return u.acceptance.Verdict(diff)
	}
	on := u.Out
	if u.output != "" {
		on = u.Err
	}
	if cause := waiting.Annotations[v1alpha1.ChangeCauseAnnotation]; cause != "" {
		on.Para(screen.Bold, "", waiting.Name+": "+cause)
	}
	changes.Print(on, diff, changes.View{Lines: !u.stat && diff.From != ""})
	if u.dryRun {
		return u.acceptance.Verdict(diff)
	}
	answers := review.Answers(diff)
	answers[v1alpha1.LifecycleReasonAnnotation] = nil // it does not wait for its reason any more
	if given := approval.Pending(waiting.Annotations); given != nil {
		u.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%s approved it already: it begins when a maintenance window lets it, not before %s", given.User, given.NotBefore.UTC().Format(time.RFC3339)))
	}
	if u.yes {
		if err := u.acceptance.Unread(diff); err != nil {
			return u.declined(err, waiting.Name+" stays proposed")
		}
		delete(answers, v1alpha1.AcknowledgeDeletionAnnotation) // no user has read the deletions
	}
	notBefore, agreed, err := u.begins(ctx, review.Question("Roll out "+waiting.Name, diff))
	if err != nil || !agreed {
		return u.declined(err, waiting.Name+" stays proposed")
	}
	if !notBefore.IsZero() {
		return u.approveLater(ctx, waiting, answers, notBefore)
	}
	if _, err := review.SetState(ctx, u.cluster, waiting, v1alpha1.LifecycleStateActive, answers); err != nil {
		return refusedApproval(err)
	}
	following, cancel := session.Within(ctx, u.timeout)
	defer cancel()
	if err := review.Follow(following, u.Session, u.cluster, u.Err, u.name, waiting.Name); err != nil {
		return err
	}
	return u.done(ctx)
}

// stale reports whether an approval was refused because the changes differ from the shown changes,
// or because the proposal was withdrawn.
func stale(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, v1alpha1.ApproveAnnotation)
}

func (u *upgrading) declined(err error, said string) error {
	u.Err.Para(screen.Dim, screen.Waiting, said)
	if err == nil {
		err = outcome.Quiet(outcome.No)
	}
	return err
}

// done prints the extension for machines.
func (u *upgrading) done(ctx context.Context) error {
	if u.output == "" {
		return nil
	}
	read, err := u.cluster.Host.Resource(extension.Resource).Get(ctx, u.name, getOptions())
	if err != nil {
		return fmt.Errorf("reading ClusterExtension %s: %w", u.name, err)
	}
	return u.PrintObject(u.output, read)
}

func yamlLines(value any) ([]string, error) {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding the output: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(encoded)), "\n"), nil
}
