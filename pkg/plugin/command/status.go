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
	kjson "sigs.k8s.io/json"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/scheme"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
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
		Short: "Show what is installed, healthy, stuck and proposed",
		Long: "Without a name: all extensions and plans on one screen, those that need a person first.\n" +
			"With a name: the revisions of the extension that are not archived, the newest first, with their phases and\n" +
			"the objects that hold them back. Exit code: 1 when a person must act before the extension matches its spec.\n\n" +
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

// unarchived selects revisions that have objects in the cluster, or may get some.
func unarchived() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: v1alpha1.LifecycleStateField + "!=" + string(v1alpha1.LifecycleStateArchived)}
}

// listUnarchived lists the unarchived revisions. It decodes the answer once. A generated client
// decodes it twice, the first time for the kind, which takes a quarter of the time for a thousand
// revisions.
func listUnarchived(ctx context.Context, cluster *session.Cluster) (*v1alpha1.ClusterExtensionRevisionList, error) {
	options := unarchived()
	raw, err := cluster.OlmV1alpha1().RESTClient().Get().Resource("clusterextensionrevisions").VersionedParams(&options, scheme.ParameterCodec).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	listed := &v1alpha1.ClusterExtensionRevisionList{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, listed); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return listed, nil
}

func statusOfAll(ctx context.Context, s *session.Session, cluster *session.Cluster, output session.Format) error {
	listed, err := listUnarchived(ctx, cluster)
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
	if extensions, err = join(extensions, others); err != nil {
		return err
	}
	printFreeze(ctx, s, cluster)
	printAll(s, extensions, listedPlans.Items)
	return nil
}

// readablePlans lists plans. If the user cannot list them, it prints that and returns none.
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

// printAll prints one screen: first the objects that need a user, then tables.
func printAll(s *session.Session, extensions []overview.Extension, proposed []hcov1alpha1.ConfigurationPlan) {
	if len(extensions) == 0 && len(proposed) == 0 {
		s.Out.Printf("Nothing is installed by Penstock. kubectl penstock deploy DIRECTORY --name NAME installs manifests.\n")
		return
	}
	needs := slices.Concat(extensionsInNeed(extensions), plans.InNeed(proposed))
	if len(needs) > 0 {
		s.Out.Printf("%s\n", s.Out.Paint(screen.Bold, "Needs attention"))
		s.Out.Lines(needs)
		s.Out.Printf("\n")
	}
	if len(extensions) > 0 {
		s.Out.Table(extensionTable(extensions, s.Now()))
	}
	if len(proposed) > 0 {
		if len(extensions) > 0 {
			s.Out.Printf("\n")
		}
		s.Out.Table(plans.Table(proposed))
	}
}

// extensionsInNeed returns lines about extensions that need a user; the command why shows the
// details.
func extensionsInNeed(extensions []overview.Extension) []screen.Line {
	var lines []screen.Line
	for _, extension := range extensions {
		for _, given := range advice.Extension(extension) {
			line := screen.Line{}
			line.Glyph, line.Style = progress.Mark(given.Signal)
			switch {
			case given.Signal == advice.NeedsAttention:
				line.Text = fmt.Sprintf("%s: %s: %s; kubectl penstock why %s", given.Subject, given.State(), given.Announced(), extension.Name)
			case given.Signal == advice.Review && given.Who == advice.Reviewer:
				line.Text = fmt.Sprintf("%s is proposed: %s", given.Subject, given.Command)
			case given.Signal == advice.Review:
				line.Text = fmt.Sprintf("%s %s: %s: %s; kubectl penstock why %s", given.Subject, given.What, given.State(), given.Announced(), extension.Name)
			default:
				continue
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func extensionTable(extensions []overview.Extension, now time.Time) screen.Table {
	out := screen.Table{Header: []string{"EXTENSION", "REVISION", "VERSION", "STATE", "READY", "AGE", "REASON"}}
	for _, extension := range extensions {
		given := advice.Extension(extension)[0]
		_, style := progress.Mark(given.Signal)
		row := []screen.Cell{{Text: extension.Name}, {Text: "-"}, {}, {}, {}, {}, {Text: given.State(), Style: style}}
		created := metav1.Time{}
		if revision := extension.Current(); revision != nil {
			ready, all := overview.Objects(revision)
			row[1].Text, row[2].Text, row[3].Text, row[4].Text = revision.Name, overview.Version(revision), overview.State(revision), fmt.Sprintf("%d/%d", ready, all)
			created = revision.CreationTimestamp
		} else if extension.Asked != nil {
			created = extension.Asked.Created
		}
		row[5].Text = duration.HumanDuration(now.Sub(created.Time))
		out.Rows = append(out.Rows, row)
	}
	return out
}

func statusOfOne(ctx context.Context, s *session.Session, cluster *session.Cluster, name string, output session.Format) error {
	found, err := cluster.Ask(ctx, name)
	if err != nil {
		return err
	}
	given := advice.Extension(found.Extension)
	if found.Revision != nil {
		given = []advice.Advice{advice.Revision(found.Revision, found.Extension.Revisions)}
	}
	shown := shownRevisions(found)
	if output != "" {
		var objects []runtime.Object
		for _, revision := range shown {
			objects = append(objects, revision)
		}
		if err := s.PrintObjects(output, objects); err != nil {
			return err
		}
		return verdict(given)
	}
	printFreeze(ctx, s, cluster)
	printHidden(s, found)
	for i, revision := range shown {
		said := advice.Revision(revision, found.Extension.Revisions)
		if i > 0 && said.Reason == reasonSuperseded && said.Signal == advice.Stopped {
			s.Out.Lines([]screen.Line{progress.Folded(revision)})
			continue
		}
		lines := progress.RevisionLines(revision)
		if at := slices.IndexFunc(given, func(one advice.Advice) bool { return one.Subject == revision.Name }); at >= 0 && given[at].Signal != said.Signal {
			// The extension's state is more urgent than the revision's own.
			lines[0].Glyph, lines[0].Style = progress.Mark(given[at].Signal)
			lines[0].Text += "; it " + given[at].What
		}
		s.Out.Lines(lines)
		if said.Because != "" && said.Signal != advice.NeedsAttention && !progress.Names(revision, said) {
			s.Out.Indented(2, screen.Dim, said.State()+": "+said.Because)
		}
	}
	switch first := given[0]; {
	case found.Revision == nil && !slices.ContainsFunc(shown, func(one *v1alpha1.ClusterExtensionRevision) bool { return one.Name == first.Subject }):
		printAdvice(s, given[:1]) // no revision shows it
	case first.Signal != advice.Healthy && first.Who != advice.Nobody && found.Revision == nil:
		s.Out.Para(screen.Yellow, "→", strings.TrimSuffix(first.Do+": "+first.Command, ": "))
	}
	if archived := len(found.Revisions) - len(shown); archived > 0 && found.Revision == nil {
		s.Out.Printf("%s\n", s.Out.Paint(screen.Dim, text.Count(archived, "archived revision")+": kubectl penstock history "+found.Name))
	}
	return verdict(given)
}

// reasonSuperseded is the reason of a revision whose objects belong to a newer revision.
const reasonSuperseded = "Superseded"

// shownRevisions returns the named revision, or else the unarchived revisions of the extension. If
// all are archived, it returns the newest.
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
		return found.Revisions[:min(1, len(found.Revisions))]
	}
	return shown
}

// watchOne follows an extension until its newest revision is rolled out, or stops.
func watchOne(ctx context.Context, s *session.Session, cluster *session.Cluster, name string) error {
	found, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	if err := review.Follow(ctx, s, cluster, s.Out, found.Name, watched(found)); err != nil {
		return err
	}
	return stands(ctx, cluster, found)
}

// stands returns the outcome for an extension whose newest revision is rolled out. The extension
// may still need a user, because its ClusterExtension requests another version.
func stands(ctx context.Context, cluster *session.Cluster, found *session.Found) error {
	if found.Revision != nil {
		return nil
	}
	now, err := cluster.Ask(ctx, found.Name)
	if err != nil {
		return err
	}
	if first := advice.Extension(now.Extension)[0]; first.Signal == advice.NeedsAttention {
		return outcome.Errorf(outcome.No, "%s %s: %s: %s\nkubectl penstock why %s says what to do", first.Subject, first.What, first.State(), first.Announced(), now.Name)
	}
	return nil
}

// watched returns the revision whose rollout is followed: the named revision, or the newest.
func watched(found *session.Found) string {
	if found.Revision != nil {
		return found.Revision.Name
	}
	return found.Newest().Name
}
