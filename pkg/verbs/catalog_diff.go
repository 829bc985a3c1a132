package verbs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/catalog/compare"
)

func newCatalogDiff(p Program) *cobra.Command {
	output, images := "", registryFlags{}
	command := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Show the changes of a new catalog, and the extensions that they reach",
		Long: "Compare two catalogs: packages, channels and versions that are added or removed, what becomes deprecated, and\n" +
			"for every version that may be installed, the version to which an extension without a range of versions would upgrade.\n\n" +
			"The command does not judge the changes: the exit status is 0 whenever both catalogs can be read.",
		Example: p.examples(
			"% catalog diff ./catalog-of-today ./catalog-of-tomorrow",
		),
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := CheckOutput(output); err != nil {
				return err
			}
			before, err := loadCatalogs(command.Context(), &images, args[:1])
			if err != nil {
				return err
			}
			after, err := loadCatalogs(command.Context(), &images, args[1:])
			if err != nil {
				return err
			}
			changes := compare.Compare(before, after)
			if output == "json" {
				return printJSON(command.OutOrStdout(), changes)
			}
			if changes.Empty() {
				_, err := fmt.Fprintln(command.OutOrStdout(), "nothing changes")
				return err
			}
			var said strings.Builder
			if err := changes.Text(&said); err != nil {
				return err
			}
			return printText(command.OutOrStdout(), said.String())
		},
	}
	images.add(command.Flags())
	command.Flags().StringVarP(&output, "output", "o", "text", "Format: text or json.")
	return command
}
