package extensions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// NewUpgrades returns the command that lists versions.
func NewUpgrades(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "upgrades [EXTENSION]",
		Short: "List newer versions, and why they are not installed",
		Long: "List ClusterExtensions with the installed version, the version that the spec leads to now, the newest version in the\n" +
			"channels that the spec asks for, and a newer version that is blocked. For one extension, show all of this, and what helps.\n" +
			"Exit code: 1 when a person must act before the extension matches its spec.",
		Example:           "  kubectl penstock upgrades\n  kubectl penstock upgrades lighthouse",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.Complete(extensionObjects(s)),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			rows, standing, err := upgradesOf(command.Context(), cluster, strings.Join(args, ""))
			if err != nil {
				return err
			}
			switch {
			case output == session.Name:
				for _, row := range rows {
					s.Out.Printf("%s/%s\n", strings.ToLower(extension.Kind.GroupKind().String()), row.Extension)
				}
				return nil
			case output != "":
				return s.PrintValue(output, map[string]any{"extensions": rows})
			case len(args) > 0:
				first := standing[rows[0].Extension]
				printUpgrades(s, rows[0], first)
				if first.Signal == advice.NeedsAttention {
					return outcome.Quiet(outcome.No)
				}
				return nil
			case len(rows) == 0:
				s.Out.Printf("No ClusterExtension asks for a package of a catalog. kubectl penstock search lists packages.\n")
				return nil
			}
			printUpgradeTable(s, rows, standing)
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

// upgradesOf reads the available versions for one extension, or for all extensions of catalogs, and
// the state of each. It sends one request per package, and two more.
func upgradesOf(ctx context.Context, cluster *session.Cluster, name string) ([]catalogv1alpha1.ExtensionUpgrades, map[string]advice.Advice, error) {
	var all []*extension.Extension
	if name != "" {
		read, err := getExtension(ctx, cluster, name)
		if err != nil {
			return nil, nil, err
		}
		if read.Spec.Source.Catalog == nil {
			return nil, nil, outcome.Errorf(outcome.No, "ClusterExtension %s is not from a catalog: spec.source.sourceType is %s", name, read.Spec.Source.SourceType)
		}
		all = append(all, read)
	} else {
		listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("listing ClusterExtensions: %w", err)
		}
		for i := range listed.Items {
			one, err := extension.From(&listed.Items[i])
			if err != nil {
				return nil, nil, err
			}
			if one.Spec.Source.Catalog != nil {
				all = append(all, one)
			}
		}
	}
	var packages []string
	for _, one := range all {
		packages = append(packages, one.Spec.Source.Catalog.PackageName)
	}
	slices.Sort(packages)
	var rows []catalogv1alpha1.ExtensionUpgrades
	for _, wanted := range slices.Compact(packages) {
		found, err := cluster.CatalogV1alpha1().CatalogPackages().GetUpgrades(ctx, wanted, metav1.GetOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("reading the upgrades of package %s: %w", wanted, session.Uninstalled(err))
		}
		rows = append(rows, found.Extensions...)
	}
	slices.SortFunc(rows, func(a, b catalogv1alpha1.ExtensionUpgrades) int { return strings.Compare(a.Extension, b.Extension) })
	if name != "" {
		rows = slices.DeleteFunc(rows, func(row catalogv1alpha1.ExtensionUpgrades) bool { return row.Extension != name })
		if len(rows) == 0 {
			return nil, nil, apierrors.NewForbidden(extension.Resource.GroupResource(), name, fmt.Errorf("to see the upgrades of %s, you need the right to get it and its installed revision", name))
		}
	}
	standing, err := adviceOf(ctx, cluster, name, all)
	return rows, standing, err
}

// adviceOf returns the advice about ClusterExtensions, by name, as status shows it. Without the
// right to list revisions, it uses only the status of the ClusterExtensions.
func adviceOf(ctx context.Context, cluster *session.Cluster, name string, all []*extension.Extension) (map[string]advice.Advice, error) {
	options := metav1.ListOptions{FieldSelector: v1alpha1.LifecycleStateField + "!=" + string(v1alpha1.LifecycleStateArchived)}
	if name != "" {
		options = session.OfExtension(name)
	}
	listed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, options)
	switch {
	case apierrors.IsForbidden(err):
		listed = &v1alpha1.ClusterExtensionRevisionList{}
	case err != nil:
		return nil, fmt.Errorf("listing revisions: %w", session.Uninstalled(err))
	}
	asked := make([]overview.Asked, len(all))
	for i, one := range all {
		asked[i] = overview.Ask(one)
	}
	standing := map[string]advice.Advice{}
	for _, one := range overview.Join(overview.Of(follow.Pointers(listed.Items)), asked) {
		standing[one.Name] = advice.Extension(one)[0]
	}
	return standing, nil
}

func printUpgradeTable(s *session.Session, rows []catalogv1alpha1.ExtensionUpgrades, standing map[string]advice.Advice) {
	table := screen.Table{Header: []string{"EXTENSION", "INSTALLED", "ALLOWED", "APPROVAL", "NEWEST", "BLOCKED"}, Clip: true}
	for _, row := range rows {
		first := standing[row.Extension]
		blocked, style := row.Message, screen.Plain
		switch {
		case first.Signal == advice.NeedsAttention:
			// Obstacles of the extension come before versions of the catalogs.
			blocked, style = first.State()+": "+first.Announced(), screen.Red
		case blocked == "" && len(row.Blocked) > 0:
			blocked = row.Blocked[0].Version + " " + row.Blocked[0].Message
		case blocked == "" && first.Signal == advice.Review:
			_, style = progress.Mark(first.Signal)
			blocked = strings.TrimSuffix(first.State()+": "+first.Announced(), ": ")
		}
		allowed := screen.Plain
		if row.Allowed != "" && row.Allowed != row.Installed {
			allowed = screen.Cyan
		}
		table.Rows = append(table.Rows, []screen.Cell{{Text: row.Extension}, {Text: row.Installed}, {Text: row.Allowed, Style: allowed}, {Text: row.Approval}, {Text: row.Newest}, {Text: blocked, Style: style}})
	}
	s.Out.Table(table)
}

// printUpgrades prints the available versions for one extension, and the next step. first is the
// extension's state.
func printUpgrades(s *session.Session, row catalogv1alpha1.ExtensionUpgrades, first advice.Advice) {
	installed := "nothing is installed"
	if row.Installed != "" {
		installed = row.Installed + " is installed"
	}
	from := ""
	if row.Channel != "" {
		from = " from channel " + row.Channel
	}
	glyph, style := progress.Mark(first.Signal)
	said := fmt.Sprintf("%s: %s", row.Extension, installed)
	switch {
	case row.Allowed == "":
		said += "; no version can be installed: " + row.Message
	case row.Allowed == row.Installed && len(row.Blocked) == 0 && first.Signal == advice.Healthy:
		said += ", and nothing is newer"
	case row.Allowed == row.Installed:
		said += ", as its spec asks for"
	default:
		said += fmt.Sprintf("; its spec leads to %s%s of catalog %s", row.Allowed, from, row.Catalog)
		switch {
		case first.Signal != advice.Healthy:
		case row.Message != "":
			said += "; " + row.Message
		default:
			glyph, style = progress.Mark(advice.InProgress) // its revision is being rolled out
		}
	}
	s.Out.Para(style, glyph, said)
	if first.Signal != advice.Healthy {
		said, command := fmt.Sprintf("%s %s", first.Subject, first.What), ""
		if first.Reason != "Proposed" {
			said += ": " + first.State()
		}
		if because := first.Announced(); because != "" {
			said += ": " + because
		}
		if first.Signal != advice.InProgress {
			command = cmp.Or(first.Command, "kubectl penstock why "+row.Extension)
		}
		s.Out.Indented(2, screen.Plain, said)
		if command != "" {
			s.Out.Printf("  %s\n", screen.Safe(command))
		}
	}
	for _, blocked := range row.Blocked {
		s.Out.Indented(2, screen.Plain, fmt.Sprintf("%s is blocked: it %s (%s)", blocked.Version, blocked.Message, blocked.Cause))
	}
	if row.Omitted > 0 {
		s.Out.Indented(2, screen.Dim, fmt.Sprintf("and %d more", row.Omitted))
	}
}
