package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/catalog/lint"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

func newCatalogLint(p Program) *cobra.Command {
	output, images := "", registryFlags{}
	command := &cobra.Command{
		Use:   "lint FILE|DIR|oci://IMAGE...",
		Short: "Report the faults of a catalog",
		Long: "Check a catalog by opm's rules, and for parts that OLM v1 cannot use. Several files are parts of one catalog.\n\n" +
			"An error is something that opm refuses; a server that reads the catalog may still accept it. A warning is something\n" +
			"that OLM v1 does not use as intended. Exit status: 0 without errors, 1 with errors, 2 when the catalog cannot be read.",
		Example: p.examples(
			"% catalog lint ./catalog",
		),
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := CheckOutput(output); err != nil {
				return err
			}
			catalog, err := loadCatalogs(command.Context(), &images, args)
			if err != nil {
				return err
			}
			return printFindings(command, output, lint.Check(catalog))
		},
	}
	images.add(command.Flags())
	command.Flags().StringVarP(&output, "output", "o", "text", "Format: text or json.")
	return command
}

func printFindings(command *cobra.Command, output string, findings []lint.Finding) error {
	errorCount := 0
	for _, finding := range findings {
		if finding.Severity == lint.Error {
			errorCount++
		}
	}
	if output == "json" {
		if findings == nil {
			findings = []lint.Finding{}
		}
		if err := printJSON(command.OutOrStdout(), findings); err != nil {
			return err
		}
	} else {
		for _, finding := range findings {
			if err := printText(command.OutOrStdout(), screen.Safe(finding.String())+"\n"); err != nil {
				return err
			}
		}
		fmt.Fprintf(command.ErrOrStderr(), "%s, %s\n", text.Count(errorCount, "error"), text.Count(len(findings)-errorCount, "warning"))
	}
	if errorCount > 0 {
		return &exitError{fmt.Errorf("the catalog has %s", text.Count(errorCount, "error")), 1}
	}
	return nil
}
