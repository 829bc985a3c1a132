package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/plans"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

type statusOptions struct {
	watch   bool
	timeout time.Duration
	output  session.Format
}

func newStatus(s *session.Session) *cobra.Command {
	var options statusOptions
	command := &cobra.Command{
		Use:   "status [EXTENSION|REVISION]",
		Short: "What is installed, healthy, stuck and proposed",
		Long: "Without a name: all extensions and plans on one screen, what needs a person first, and ClusterExtensions that have\n" +
			"no revision yet; -w leaves out the latter.\n" +
			"With a name: the revisions of the extension that are not archived, the newest first, with their phases and\n" +
			"the objects that hold them back.\n\n" +
			"-w follows changes. With a name it ends when the newest revision is rolled out (exit 0), or stops (exit 1).\n" +
			"With -o json it prints each object, in one line, whenever the object changes.",
		Example: "  # Everything on one screen\n  kubectl penstock status\n" +
			"  # One extension, until its rollout has ended\n  kubectl penstock status lighthouse -w --timeout 5m\n" +
			"  # The same for a program\n  kubectl penstock status lighthouse -w -o json --timeout 5m",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := session.Within(command.Context(), options.timeout)
			defer cancel()
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			switch {
			case options.watch && options.output != "":
				return printChanges(ctx, s, cluster, args, options.output)
			case len(args) == 0 && options.watch:
				return watchAll(ctx, s, cluster)
			case len(args) == 0:
				return statusOfAll(ctx, s, cluster, options.output)
			case options.watch:
				return watchOne(ctx, s, cluster, args[0])
			default:
				return statusOfOne(ctx, s, cluster, args[0], options.output)
			}
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&options.watch, "watch", "w", false, "Follow what changes.")
	flags.DurationVar(&options.timeout, "timeout", 0, "End after this time with exit code 124; 0 is no limit.")
	options.output.Add(flags)
	return command
}

// unarchived selects revisions that have something in the cluster, or may get it.
func unarchived() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: v1alpha1.LifecycleStateField + "!=" + string(v1alpha1.LifecycleStateArchived)}
}

func statusOfAll(ctx context.Context, s *session.Session, cluster *session.Cluster, output session.Format) error {
	listed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, unarchived())
	if err != nil {
		return fmt.Errorf("listing revisions: %w", session.Uninstalled(err))
	}
	listedPlans, err := readablePlans(ctx, s, cluster)
	if err != nil {
		return err
	}
	extensions := overview.Of(follow.Pointers(listed.Items))
	others, err := clusterExtensions(ctx, s, cluster)
	if err != nil {
		return err
	}
	if output != "" {
		var objects []runtime.Object
		for i := range listed.Items {
			objects = append(objects, &listed.Items[i])
		}
		for i := range others {
			if !slices.ContainsFunc(extensions, func(one overview.Extension) bool { return one.Name == others[i].GetName() }) {
				objects = append(objects, &others[i])
			}
		}
		for i := range listedPlans.Items {
			objects = append(objects, &listedPlans.Items[i])
		}
		return s.PrintObjects(output, objects)
	}
	asked, err := readWanted(others, extensions)
	if err != nil {
		return err
	}
	printFreeze(ctx, s, cluster)
	printAll(s, extensions, asked, listedPlans.Items)
	return nil
}

// readablePlans lists plans. Who may not see them is told so, and sees the rest.
func readablePlans(ctx context.Context, s *session.Session, cluster *session.Cluster) (*hcov1alpha1.ConfigurationPlanList, error) {
	listed, err := cluster.HcoV1alpha1().ConfigurationPlans().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("plans are not shown: %v", err))
		return &hcov1alpha1.ConfigurationPlanList{}, nil
	case err != nil:
		return nil, fmt.Errorf("listing plans: %w", err)
	}
	return listed, nil
}

// printAll prints one screen: what needs a person, then tables.
func printAll(s *session.Session, extensions []overview.Extension, asked wanted, proposed []hcov1alpha1.ConfigurationPlan) {
	if len(extensions) == 0 && len(asked.alone) == 0 && len(proposed) == 0 {
		s.Out.Printf("Nothing is installed by Penstock. kubectl penstock deploy DIRECTORY --name NAME installs manifests.\n")
		return
	}
	needs := slices.Concat(extensionsInNeed(extensions), asked.inNeed(), plans.InNeed(proposed))
	if len(needs) > 0 {
		s.Out.Printf("%s\n", s.Out.Paint(screen.Bold, "Needs you"))
		s.Out.Lines(needs)
		s.Out.Printf("\n")
	}
	if len(extensions)+len(asked.alone) > 0 {
		table := extensionTable(extensions, asked.unmet, s.Now())
		table.Rows = append(table.Rows, asked.rows(s.Now())...)
		s.Out.Table(table)
	}
	if len(proposed) > 0 {
		if len(extensions)+len(asked.alone) > 0 {
			s.Out.Printf("\n")
		}
		s.Out.Table(plans.Table(proposed))
	}
}

// extensionsInNeed are lines about extensions that somebody has to look at.
func extensionsInNeed(extensions []overview.Extension) []screen.Line {
	var lines []screen.Line
	for _, extension := range extensions {
		for _, revision := range extension.Revisions {
			if found := overview.NeedsPerson(revision); found != nil {
				lines = append(lines, screen.Line{Glyph: screen.Bad, Style: screen.Red, Text: fmt.Sprintf("%s: %s: %s", revision.Name, found.Reason, found.Message)})
			}
		}
		if proposed := extension.Proposed(); proposed != nil {
			lines = append(lines, screen.Line{Glyph: screen.Notice, Style: screen.Yellow,
				Text: fmt.Sprintf("%s is proposed: kubectl penstock diff %s, then kubectl penstock resume %s", proposed.Name, proposed.Name, proposed.Name)})
		}
	}
	return lines
}

func extensionTable(extensions []overview.Extension, unmet map[string]overview.Asked, now time.Time) screen.Table {
	out := screen.Table{Header: []string{"EXTENSION", "REVISION", "VERSION", "STATE", "READY", "AGE", "REASON"}}
	for _, extension := range extensions {
		revision := extension.Current()
		ready, all := overview.Objects(revision)
		decisive := overview.Decisive(revision)
		style := screen.Green
		switch verdict, _ := overview.RevisionVerdict(revision); {
		case overview.NeedsPerson(revision) != nil:
			style = screen.Red
		case verdict == overview.Going:
			style = screen.Cyan
		case verdict == overview.Stopped:
			style = screen.Yellow
		}
		reason := decisive.Reason
		if asked, is := unmet[extension.Name]; is {
			reason, style = asked.Reason, screen.Red
		}
		out.Rows = append(out.Rows, []screen.Cell{
			{Text: extension.Name}, {Text: revision.Name}, {Text: overview.Version(revision)}, {Text: overview.State(revision)},
			{Text: fmt.Sprintf("%d/%d", ready, all)}, {Text: duration.HumanDuration(now.Sub(revision.CreationTimestamp.Time))},
			{Text: reason, Style: style},
		})
	}
	return out
}

func statusOfOne(ctx context.Context, s *session.Session, cluster *session.Cluster, name string, output session.Format) error {
	found, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	shown := shownRevisions(found)
	if output != "" {
		var objects []runtime.Object
		for _, revision := range shown {
			objects = append(objects, revision)
		}
		return s.PrintObjects(output, objects)
	}
	printFreeze(ctx, s, cluster)
	for _, revision := range shown {
		s.Out.Lines(progress.RevisionLines(revision))
		if decisive := overview.Decisive(revision); decisive.Message != "" && overview.NeedsPerson(revision) == nil {
			s.Out.Indented(2, screen.Dim, decisive.Reason+": "+decisive.Message)
		}
	}
	if given := advice.Extension(found.Revisions)[0]; given.Who != advice.Nobody && found.Revision == nil {
		s.Out.Para(screen.Yellow, "→", strings.TrimSuffix(given.Do+": "+given.Command, ": "))
	}
	if archived := len(found.Revisions) - len(shown); archived > 0 && found.Revision == nil {
		s.Out.Printf("%s\n", s.Out.Paint(screen.Dim, text.Count(archived, "archived revision")+": kubectl penstock history "+found.Name))
	}
	return nil
}

// shownRevisions are the one that was named, or those of the extension that are not
// archived, or the newest when all are.
func shownRevisions(found *session.Found) []*v1alpha1.ClusterExtensionRevision {
	if found.Revision != nil {
		return []*v1alpha1.ClusterExtensionRevision{found.Revision}
	}
	var shown []*v1alpha1.ClusterExtensionRevision
	for _, revision := range found.Revisions {
		if revision.Spec.LifecycleState != v1alpha1.LifecycleStateArchived || revision.DeletionTimestamp != nil {
			shown = append(shown, revision)
		}
	}
	if len(shown) == 0 {
		return found.Revisions[:1]
	}
	return shown
}

// watchOne follows an extension until its newest revision is rolled out, or stops.
func watchOne(ctx context.Context, s *session.Session, cluster *session.Cluster, name string) error {
	found, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	return review.Follow(ctx, s, cluster, s.Out, found.Name, watched(found))
}

// watched is the revision whose rollout is followed: the one that was named, or the newest.
func watched(found *session.Found) string {
	if found.Revision != nil {
		return found.Revision.Name
	}
	return found.Newest().Name
}
