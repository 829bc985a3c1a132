package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
	"github.com/penstock-project/penstock/pkg/verbs"
)

type templateOptions struct {
	client.Flags
	output string
}

func newTemplateCommand() *cobra.Command {
	options := templateOptions{Flags: client.Flags{UserAgent: userAgent()}}
	command := &cobra.Command{
		Use:   "template TEMPLATE",
		Short: "Print the image that a template leads to in a cluster, or why it leads to none",
		Long: "Replace the variables of a template with values of a cluster, as for the annotations olm.catalogImageTemplate\n" +
			"and penstock.dev/catalog-image-template of CatalogSources and ClusterCatalogs. Variables are {kube_major_version},\n" +
			"{kube_minor_version}, {kube_patch_version} and {group:G,version:V,kind:K,name:N,namespace:S,jsonpath:{P}}.\n\n" +
			"Objects are read with your rights. Penstock reads them as ServiceAccount penstock-templates, which has its own rights.\n" +
			"Nothing is written. The exit status is 1 when there is no image.",
		Example: "  penstock template 'quay.io/x:v{kube_minor_version}'\n" +
			"  penstock template 'quay.io/x:{group:config.openshift.io,version:v1,kind:ClusterVersion,name:version,namespace:,jsonpath:{.status.desired.version}}'",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return resolveTemplate(command, options, args[0]) },
	}
	options.Add(command.Flags())
	command.Flags().StringVarP(&options.output, "output", "o", "text", "Format: text or json.")
	return command
}

type templateResult struct {
	// Image is the resulting image; empty without one.
	Image     string             `json:"image"`
	Variables []templateVariable `json:"variables"`
	// Problem describes the syntax error.
	Problem string `json:"problem,omitempty"`
}

type templateVariable struct {
	Variable string `json:"variable"`
	Value    string `json:"value,omitempty"`
	Why      string `json:"why,omitempty"`
}

func resolveTemplate(command *cobra.Command, options templateOptions, text string) error {
	if err := verbs.CheckOutput(options.output); err != nil {
		return verbs.Unusable(err)
	}
	parsed := imagetemplate.Parse(text)
	result := templateResult{Variables: []templateVariable{}}
	if parsed.Problem != nil {
		result.Problem = parsed.Problem.Error()
	}
	values := map[string]string{}
	if len(parsed.Variables()) > 0 {
		config, err := options.Config()
		if err != nil {
			return err
		}
		reader, err := lookup.New(config)
		if err != nil {
			return err
		}
		for _, variable := range parsed.Variables() {
			found := templateVariable{Variable: variable.Text}
			if found.Value, err = reader.Value(command.Context(), variable); err != nil {
				found.Why = err.Error()
			}
			values[variable.Text] = found.Value
			result.Variables = append(result.Variables, found)
		}
	}
	resolved := parsed.Resolve(func(v imagetemplate.Variable) string { return values[v.Text] })
	if result.Image = resolved.Image; resolved.Malformed && result.Problem == "" {
		result.Problem = "the result of the template is not an image reference, or a value has turned the first part of its name into a host"
	}
	return result.print(command, options.output)
}

// print prints the image and the values of the variables. It returns an error without an image.
func (r templateResult) print(command *cobra.Command, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(command.OutOrStdout())
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
		if r.Image == "" {
			return errors.New("the template leads to no image")
		}
		return nil
	}
	if r.Image == "" {
		causes := []string{}
		for _, one := range r.Variables {
			if one.Why != "" {
				causes = append(causes, one.Variable+": "+one.Why)
			}
		}
		if r.Problem != "" {
			causes = append(causes, r.Problem)
		}
		return fmt.Errorf("the template leads to no image:\n  %s", strings.Join(causes, "\n  "))
	}
	if _, err := fmt.Fprintln(command.OutOrStdout(), r.Image); err != nil {
		return err
	}
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 3, ' ', 0)
	for _, one := range r.Variables {
		fmt.Fprintf(table, "  %s\t%s\n", one.Variable, one.Value)
	}
	return table.Flush()
}
