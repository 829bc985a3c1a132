package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/client/upgrades"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type lifecycleOptions struct {
	reason     string
	yes        bool
	acceptance review.Acceptance
	output     session.Format
}

func (o *lifecycleOptions) add(command *cobra.Command, asks bool) {
	flags := command.Flags()
	flags.StringVar(&o.reason, "reason", "", "Why; status shows it.")
	if asks {
		flags.BoolVar(&o.yes, "yes", false, "Do not ask.")
	}
	o.output.Add(flags)
}

func newPause(s *session.Session) *cobra.Command {
	var options lifecycleOptions
	command := &cobra.Command{
		Use:               "pause EXTENSION|REVISION",
		Short:             "Stop all writes for a revision: no rollout, no repair",
		Long:              "Pause a revision, or the newest one of an extension. Objects in the cluster stay as they are, and are not repaired.",
		Example:           "  kubectl penstock pause lighthouse --reason \"INC-7: we look at it by hand\"",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			return changeState(command.Context(), s, args[0], v1alpha1.LifecycleStatePaused, options, nil)
		},
	}
	options.add(command, false)
	return command
}

func newResume(s *session.Session) *cobra.Command {
	var options lifecycleOptions
	command := &cobra.Command{
		Use:   "resume EXTENSION|REVISION",
		Short: "Resume a paused revision, or release the hold of a rollback",
		Long: "Resume a paused revision, or the newest paused one of an extension. A revision that was never rolled out is a\n" +
			"proposal: the command shows its changes, and asks.\n\n" +
			"After a rollback the ClusterExtension that owns the revisions makes no new one, because it would roll out again what\n" +
			"was rolled back. For an extension that is held in this way, the command says so, asks, and releases the hold.",
		Example:           "  kubectl penstock resume lighthouse --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			return changeState(command.Context(), s, args[0], v1alpha1.LifecycleStateActive, options, resumption)
		},
	}
	options.add(command, true)
	options.acceptance.AddFlags(command.Flags(), false)
	return command
}

func newArchive(s *session.Session) *cobra.Command {
	var options lifecycleOptions
	command := &cobra.Command{
		Use:   "archive EXTENSION|REVISION",
		Short: "End a revision for good",
		Long: "Archive a revision, or the newest one of an extension. Its objects that no other active revision of the extension has\n" +
			"are deleted; every other object gets the content of that other revision again. This is final. To remove an\n" +
			"extension, delete its revisions.",
		Example:           "  kubectl penstock archive lighthouse-3 --reason \"its image does not exist\" --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			return changeState(command.Context(), s, args[0], v1alpha1.LifecycleStateArchived, options, archival)
		},
	}
	options.add(command, true)
	return command
}

// asking shows the effect of a change of state. It returns a question, or "" if there is nothing to
// ask, and annotations for the change.
type asking func(ctx context.Context, s *session.Session, cluster *session.Cluster, found *session.Found, revision *v1alpha1.ClusterExtensionRevision) (string, map[string]any, error)

// resumption shows the changes of a proposal. If the user agrees, the annotations acknowledge its
// deletions.
func resumption(ctx context.Context, s *session.Session, cluster *session.Cluster, found *session.Found, revision *v1alpha1.ClusterExtensionRevision) (string, map[string]any, error) {
	if proposed := found.Proposed(); proposed == nil || proposed.Name != revision.Name {
		return "", nil, nil
	}
	diff, _, err := review.Proposal(ctx, cluster, found.Name, revision)
	if err != nil {
		return "", nil, err
	}
	changes.Print(s.Err, diff, changes.View{Lines: true})
	if decision := upgrades.Window(ctx, cluster.Host, found.Name); decision != nil && !decision.Open && overview.OfClusterExtension(revision) {
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%s: resuming begins it now; kubectl penstock upgrade %s --when=window begins it when upgrades may begin", decision.String(), found.Name))
	}
	return review.Question("Roll out "+revision.Name, diff), review.Answers(diff), nil
}

// unread approves a proposal of the server without showing its changes. It does not acknowledge
// deletions.
func unread(ctx context.Context, cluster *session.Cluster, found *session.Found, revision *v1alpha1.ClusterExtensionRevision, acceptance review.Acceptance) (map[string]any, error) {
	if revision.Annotations[v1alpha1.ProposedAnnotation] != "true" {
		return map[string]any{}, nil
	}
	diff, _, err := review.Proposal(ctx, cluster, found.Name, revision)
	if err != nil {
		return nil, err
	}
	if err := acceptance.Unread(diff); err != nil {
		return nil, err
	}
	return map[string]any{v1alpha1.ApproveAnnotation: diff.Summary.ApprovalDigest}, nil
}

func archival(_ context.Context, _ *session.Session, _ *session.Cluster, found *session.Found, revision *v1alpha1.ClusterExtensionRevision) (string, map[string]any, error) {
	return fmt.Sprintf("Archive %s for good, and delete its objects that no other active revision of %s has?", revision.Name, found.Name), nil, nil
}

// changeState sets the lifecycle state of a revision, unless it has changed since it was read.
func changeState(ctx context.Context, s *session.Session, name string, state v1alpha1.LifecycleState, options lifecycleOptions, ask asking) error {
	if err := options.acceptance.Check(options.yes, false); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	found, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	revision := found.Newest()
	if found.Revision != nil {
		revision = found.Revision
	}
	if state == v1alpha1.LifecycleStateActive && found.Revision == nil && isHeld(revision) {
		return releaseHold(ctx, s, cluster, revision, options)
	}
	if revision.Spec.LifecycleState == state {
		s.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("%s is %s already", revision.Name, state))
		return nil
	}
	annotations := map[string]any{}
	if state == v1alpha1.LifecycleStateActive && options.yes {
		if annotations, err = unread(ctx, cluster, found, revision, options.acceptance); err != nil {
			return err
		}
	}
	if ask != nil && !options.yes {
		asked, acknowledged, err := ask(ctx, s, cluster, found, revision)
		if err != nil {
			return err
		}
		if asked != "" {
			agreed, err := s.Confirm(ctx, asked)
			if err != nil {
				return outcome.Errorf(outcome.Unknown, "%w; --yes does it without asking", err)
			}
			if !agreed {
				s.Err.Para(screen.Dim, screen.Waiting, "nothing was changed")
				return outcome.Quiet(outcome.No)
			}
			annotations = acknowledged
		}
	}
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[overview.ReasonAnnotation] = nil
	if options.reason != "" {
		annotations[overview.ReasonAnnotation] = options.reason
	}
	changed, err := review.SetState(ctx, cluster, revision, state, annotations)
	if err != nil {
		return err
	}
	if options.output != "" {
		return s.PrintObject(options.output, changed)
	}
	s.Out.Para(screen.Green, screen.Good, fmt.Sprintf("%s is %s; kubectl penstock status %s -w follows it", changed.Name, state, found.Name))
	return nil
}
