package extensions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// NewUpgrades lists versions.
func NewUpgrades(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "upgrades [EXTENSION]",
		Short: "Newer versions than the installed ones, and why they are not installed",
		Long: "List ClusterExtensions with the installed version, the version that the spec leads to now, the newest version in the\n" +
			"channels that the spec asks for, and a newer version that is blocked. For one extension, show all of this, and what helps.",
		Example:           "  kubectl penstock upgrades\n  kubectl penstock upgrades lighthouse",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.Complete(extensionObjects(s)),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			rows, err := upgradesOf(command.Context(), cluster, strings.Join(args, ""))
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
				printUpgrades(s, rows[0])
				return nil
			case len(rows) == 0:
				s.Out.Printf("No ClusterExtension asks for a package of a catalog. kubectl penstock search lists packages.\n")
				return nil
			}
			printUpgradeTable(s, rows)
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

// upgradesOf reads what there is for one extension, or for all of catalogs. It costs a request
// a package.
func upgradesOf(ctx context.Context, cluster *session.Cluster, name string) ([]catalogv1alpha1.ExtensionUpgrades, error) {
	var packages []string
	if name != "" {
		read, err := getExtension(ctx, cluster, name)
		if err != nil {
			return nil, err
		}
		if read.Spec.Source.Catalog == nil {
			return nil, outcome.Errorf(outcome.No, "ClusterExtension %s is not from a catalog: spec.source.sourceType is %s", name, read.Spec.Source.SourceType)
		}
		packages = []string{read.Spec.Source.Catalog.PackageName}
	} else {
		listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
		}
		for i := range listed.Items {
			one, err := extension.From(&listed.Items[i])
			if err != nil {
				return nil, err
			}
			if one.Spec.Source.Catalog != nil {
				packages = append(packages, one.Spec.Source.Catalog.PackageName)
			}
		}
	}
	slices.Sort(packages)
	var rows []catalogv1alpha1.ExtensionUpgrades
	for _, wanted := range slices.Compact(packages) {
		found, err := cluster.CatalogV1alpha1().CatalogPackages().GetUpgrades(ctx, wanted, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the upgrades of package %s: %w", wanted, session.Uninstalled(err))
		}
		rows = append(rows, found.Extensions...)
	}
	slices.SortFunc(rows, func(a, b catalogv1alpha1.ExtensionUpgrades) int { return strings.Compare(a.Extension, b.Extension) })
	if name == "" {
		return rows, nil
	}
	rows = slices.DeleteFunc(rows, func(row catalogv1alpha1.ExtensionUpgrades) bool { return row.Extension != name })
	if len(rows) == 0 {
		return nil, apierrors.NewForbidden(extension.Resource.GroupResource(), name, fmt.Errorf("to see the upgrades of %s, you need the right to get it and its installed revision", name))
	}
	return rows, nil
}

func printUpgradeTable(s *session.Session, rows []catalogv1alpha1.ExtensionUpgrades) {
	table := screen.Table{Header: []string{"EXTENSION", "INSTALLED", "ALLOWED", "APPROVAL", "NEWEST", "BLOCKED"}, Clip: true}
	for _, row := range rows {
		blocked := row.Message
		if blocked == "" && len(row.Blocked) > 0 {
			blocked = row.Blocked[0].Version + " " + row.Blocked[0].Message
		}
		style := screen.Plain
		if row.Allowed != "" && row.Allowed != row.Installed {
			style = screen.Cyan
		}
		table.Rows = append(table.Rows, []screen.Cell{{Text: row.Extension}, {Text: row.Installed}, {Text: row.Allowed, Style: style}, {Text: row.Approval}, {Text: row.Newest}, {Text: blocked}})
	}
	s.Out.Table(table)
}

// printUpgrades says what there is for one extension, and what helps.
func printUpgrades(s *session.Session, row catalogv1alpha1.ExtensionUpgrades) {
	installed := "nothing is installed"
	if row.Installed != "" {
		installed = row.Installed + " is installed"
	}
	switch {
	case row.Allowed == "":
		s.Out.Para(screen.Red, screen.Bad, fmt.Sprintf("%s: %s; no version can be installed: %s", row.Extension, installed, row.Message))
	case row.Allowed == row.Installed && len(row.Blocked) == 0:
		s.Out.Para(screen.Green, screen.Good, fmt.Sprintf("%s: %s, and nothing is newer", row.Extension, installed))
	case row.Allowed == row.Installed:
		s.Out.Para(screen.Green, screen.Good, fmt.Sprintf("%s: %s, as its spec asks for", row.Extension, installed))
	default:
		from := ""
		if row.Channel != "" {
			from = " from channel " + row.Channel
		}
		s.Out.Para(screen.Cyan, screen.Notice, fmt.Sprintf("%s: %s; its spec leads to %s%s of catalog %s", row.Extension, installed, row.Allowed, from, row.Catalog))
		s.Out.Para(screen.Plain, "", fmt.Sprintf("kubectl penstock upgrade %s shows it once it is proposed, and approves it", row.Extension))
	}
	for _, blocked := range row.Blocked {
		s.Out.Indented(2, screen.Plain, fmt.Sprintf("%s is blocked: it %s (%s)", blocked.Version, blocked.Message, blocked.Cause))
	}
	if row.Omitted > 0 {
		s.Out.Indented(2, screen.Dim, fmt.Sprintf("and %d more", row.Omitted))
	}
}
