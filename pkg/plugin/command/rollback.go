package command

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newRollback(s *session.Session) *cobra.Command {
	var options deployOptions
	to := ""
	command := &cobra.Command{
		Use:   "rollback EXTENSION",
		Short: "Go back to a revision that has succeeded, after showing what that changes",
		Long: "Show what the rollback changes, ask, and create the next revision with the content of an earlier one: the one in --to,\n" +
			"or else the newest one that succeeded before the current one. When a revision is created meanwhile, nothing\n" +
			"happens (exit code 3).",
		Example: "  kubectl penstock rollback lighthouse --cause \"v1.1.0 is slow\"\n" +
			"  kubectl penstock rollback lighthouse --to 1 --dry-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			d := &deployment{Session: s, deployOptions: options}
			d.name = args[0]
			err := cmp.Or(d.checkOutput(), d.acceptance.Check(d.yes, d.dryRun))
			if err != nil {
				return err
			}
			if d.cluster, err = s.Connect(); err != nil {
				return err
			}
			return d.rollback(command.Context(), to)
		},
	}
	flags := command.Flags()
	flags.StringVar(&to, "to", "", "Number or name of the revision to go back to.")
	flags.StringVar(&options.cause, "cause", "", "Why, for the history.")
	flags.BoolVar(&options.yes, "yes", false, "Do not ask.")
	flags.BoolVar(&options.dryRun, "dry-run", false, "Only show what changes. Exit code as for diff.")
	options.acceptance.AddFlags(flags, true)
	flags.BoolVar(&options.stat, "stat", false, "Show the diff without the lines.")
	addUnfold(flags, &options.unfold)
	flags.DurationVar(&options.timeout, "timeout", review.Patience, "Stop following after this time, with exit code 124; the rollout continues. 0 is no limit.")
	options.output.AddWithMarkdown(flags)
	return command
}

func (d *deployment) rollback(ctx context.Context, to string) error {
	target, err := d.target(ctx, to)
	if err != nil {
		return err
	}
	if !d.yes && !d.dryRun && !d.Person() {
		return outcome.Errorf(outcome.Unknown, "there is no terminal to ask on: --yes goes back without asking, --dry-run only shows what changes")
	}
	api := d.cluster.OlmV1alpha1().ClusterExtensionRevisions()
	asked := &v1alpha1.RevisionRollback{Spec: v1alpha1.RevisionRollbackSpec{Cause: d.cause}}
	would, err := api.Rollback(ctx, target, asked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("asking what a rollback to %s would do: %w", target, err)
	}
	if diff := would.Status.Diff; diff != nil && review.Verdict(diff) == nil && d.output == "" {
		said, err := d.sameContent(ctx, would.Status.From, target)
		if err != nil {
			return err
		}
		if said != "" {
			d.Err.Para(screen.Dim, screen.Waiting, said)
			return nil
		}
	}
	if err := d.showRollback(target, would); err != nil {
		return err
	}
	if d.dryRun {
		if would.Status.Diff == nil {
			return nil
		}
		return d.acceptance.Verdict(would.Status.Diff)
	}
	if d.yes && would.Status.Diff != nil {
		if err := d.acceptance.Unread(would.Status.Diff); err != nil {
			d.Err.Para(screen.Dim, screen.Waiting, "nothing was rolled back")
			return err
		}
	}
	if !d.yes {
		asked := fmt.Sprintf("Roll %s back to %s, as %s", d.name, target, would.Status.Revision)
		if would.Status.Diff == nil {
			asked += "?"
		} else {
			asked = review.Question(asked, would.Status.Diff)
		}
		agreed, err := d.Confirm(ctx, asked)
		if err != nil {
			return err
		}
		if !agreed {
			d.Err.Para(screen.Dim, screen.Waiting, "nothing was rolled back")
			return outcome.Quiet(outcome.No)
		}
	}
	// The shown diff starts at this revision. If another revision is the newest by now, the server
	// reports a conflict.
	asked.Spec.From = would.Status.From
	done, err := api.Rollback(ctx, target, asked, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("rolling back to %s: %w", target, err)
	}
	return d.follow(ctx, done.Status.Revision)
}

func (d *deployment) showRollback(target string, would *v1alpha1.RevisionRollback) error {
	on := d.Out
	if d.output != "" {
		if d.dryRun && d.output != session.Markdown {
			return d.PrintValue(d.output, would)
		}
		on = d.Err
	}
	if would.Status.Diff != nil && d.output == session.Markdown {
		return changes.Write(d.Session, d.output, would.Status.Diff, d.view(true))
	}
	if would.Status.Diff == nil {
		d.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("what changes from %s to %s is not shown: you cannot read the diffs of both", would.Status.From, target))
		return nil
	}
	changes.Print(on, would.Status.Diff, d.view(true))
	return nil
}

func (d *deployment) target(ctx context.Context, to string) (string, error) {
	history, err := d.cluster.OlmV1alpha1().RevisionHistories().Get(ctx, d.name, metav1.GetOptions{})
	if session.NotFound(err) {
		return "", d.cluster.Unknown(ctx, d.name)
	}
	if err != nil {
		return "", fmt.Errorf("reading the history of %s: %w", d.name, session.Uninstalled(err))
	}
	rows := history.Revisions
	if to != "" {
		return named(d.name, to, rows)
	}
	// The current revision and abandoned revisions are no targets of a rollback.
	current := len(rows) - 1
	for current > 0 && (isUnusable(rows[current].State) || rows[current].State == string(v1alpha1.LifecycleStateArchived)) {
		current--
	}
	for i := current - 1; i >= 0; i-- {
		if rows[i].Result == v1alpha1.ResultSucceeded && !isUnusable(rows[i].State) {
			return rows[i].Name, nil
		}
	}
	return "", outcome.Errorf(outcome.No, "%s has no earlier revision that has succeeded; kubectl penstock history %s lists all revisions, --to names one", d.name, d.name)
}

func named(extension, to string, rows []v1alpha1.RevisionRecord) (string, error) {
	number, err := strconv.ParseInt(strings.TrimPrefix(to, extension+"-"), 10, 64)
	if err != nil || number < 1 {
		return "", outcome.Errorf(outcome.Unknown, "--to %q: want the number or the name of a revision of %s", to, extension)
	}
	var there []string
	for i := range rows {
		switch {
		case isUnusable(rows[i].State):
			continue
		case rows[i].Revision == number:
			return rows[i].Name, nil
		}
		there = append(there, rows[i].Name)
	}
	return "", outcome.Errorf(outcome.No, "%s has no revision %d to go back to; it has %s", extension, number, session.Enumerate(there))
}

// sameContent returns the message when the rolled out revision has the content of the target
// already.
func (d *deployment) sameContent(ctx context.Context, from, target string) (string, error) {
	history, err := d.cluster.OlmV1alpha1().RevisionHistories().Get(ctx, d.name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the history of %s: %w", d.name, err)
	}
	return alreadyThere(history.Revisions, from, target), nil
}

// alreadyThere returns the message when a rollback would change nothing. It is empty if the newest
// revision is not rolled out: then the rollback is needed. rows are oldest first.
func alreadyThere(rows []v1alpha1.RevisionRecord, from, target string) string {
	said, earlier := "", ""
	for i := range rows {
		row := &rows[i]
		if row.Name == from && row.State == string(v1alpha1.LifecycleStateActive) {
			said = from + " has that content already"
		}
		if row.Name == target {
			for j := i - 1; j >= 0 && earlier == ""; j-- {
				if rows[j].Result == v1alpha1.ResultSucceeded && !isUnusable(rows[j].State) {
					earlier = rows[j].Name
				}
			}
		}
	}
	if said != "" && earlier != "" {
		said += "; --to " + earlier + " goes further back"
	}
	return said
}

// isUnusable is true for revisions that a rollback cannot use.
func isUnusable(state string) bool {
	return state == v1alpha1.StateDeleted || state == v1alpha1.StateDeleting
}
