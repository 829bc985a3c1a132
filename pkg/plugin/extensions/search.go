package extensions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// NewSearch returns the command that lists packages.
func NewSearch(s *session.Session) *cobra.Command {
	var output session.Format
	catalog := ""
	command := &cobra.Command{
		Use:   "search [TEXT|KIND]",
		Short: "List the packages that the catalogs of the cluster offer",
		Long: "List the packages whose name or description has the text, or that bring the kind, such as Lamp or Lamp.example.com.\n" +
			"Without an argument, list all packages. Exit code: 0 a package was found, 1 none was found.",
		Example: "  kubectl penstock search lighthouse\n  kubectl penstock search Beacon --catalog examples",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			options := metav1.ListOptions{}
			if catalog != "" {
				options.LabelSelector = catalogv1alpha1.CatalogLabel + "=" + catalog
			}
			listed, err := cluster.CatalogV1alpha1().CatalogPackages().List(command.Context(), options)
			if err != nil {
				return fmt.Errorf("listing packages: %w", session.Uninstalled(err))
			}
			wanted := strings.Join(args, "")
			found := slices.DeleteFunc(listed.Items, func(one catalogv1alpha1.CatalogPackage) bool { return !matches(&one, wanted) })
			return printPackages(s, output, found, wanted)
		},
	}
	flags := command.Flags()
	flags.StringVar(&catalog, "catalog", "", "Only packages of this ClusterCatalog.")
	output.Add(flags)
	return command
}

func matches(one *catalogv1alpha1.CatalogPackage, wanted string) bool {
	wanted = strings.ToLower(wanted)
	if strings.Contains(strings.ToLower(one.Name), wanted) || strings.Contains(strings.ToLower(one.Description), wanted) {
		return true
	}
	return slices.ContainsFunc(one.Kinds, func(kind catalogv1alpha1.PackageKind) bool {
		name := strings.ToLower(kind.Kind)
		return wanted == name || wanted == name+"."+strings.ToLower(kind.Group)
	})
}

func printPackages(s *session.Session, output session.Format, found []catalogv1alpha1.CatalogPackage, wanted string) error {
	if output != "" {
		var objects []runtime.Object
		for i := range found {
			objects = append(objects, &found[i])
		}
		return s.PrintObjects(output, objects)
	}
	if len(found) == 0 {
		return outcome.Errorf(outcome.No, "no catalog has a package with %q in its name or description, or that brings that kind; kubectl penstock search lists all", wanted)
	}
	table := screen.Table{Header: []string{"PACKAGE", "CATALOG", "LATEST", "CHANNEL", "INSTALLED", "DESCRIPTION"}, Clip: true}
	for i := range found {
		one := &found[i]
		var installed []string
		for _, version := range one.Installed {
			installed = append(installed, version.Version)
		}
		latest, _ := install.Latest(one)
		table.Add(one.Name, one.Catalog, latest, one.DefaultChannel, strings.Join(installed, ","), one.Description)
	}
	s.Out.Table(table)
	if len(found) == 1 {
		s.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("kubectl penstock install %s -n NAMESPACE installs it", found[0].Name))
	}
	return nil
}
