package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/capabilities"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart"
	texts "github.com/penstock-project/penstock/pkg/text"
)

const capabilitiesTimeout = 30 * time.Second

type chartOptions struct {
	from        string
	valueFiles  []string
	release     string
	kubeVersion string
	apiVersions []string
	generated   []string
	carryOn     string
}

func (o *chartOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.from, "chart", "", "Helm chart, a directory, an archive or an image (oci://), instead of plain manifests.")
	flags.StringSliceVar(&o.valueFiles, "values", nil, "Files with values, YAML or JSON; when several set a value, the last one counts (--chart).")
	flags.StringVar(&o.release, "release", "", "Name of the release, as templates see it. Default: the name of the extension (--chart).")
	flags.StringVar(&o.kubeVersion, "kube-version", "", "Version of Kubernetes that the chart is rendered for; no cluster is asked. Default: version and kinds of the cluster (--chart).")
	flags.StringSliceVar(&o.apiVersions, "api-versions", nil, "Kinds and versions that the cluster serves too, such as example.com/v1/Lamp (--chart).")
	flags.StringSliceVar(&o.generated, "generated-secret", nil, "Secrets whose values the chart generates at random, as NAMESPACE/NAME or NAME. They are generated once: see --carry-on (--chart).")
	flags.StringVar(&o.carryOn, "carry-on", "", "File with the existing generated Secrets, YAML or JSON: their values stay (--chart).")
}

func chartFlags() []string {
	return []string{"values", "release", "kube-version", "api-versions", "generated-secret", "carry-on"}
}

func (o *chartOptions) validate(installNamespace string) error {
	switch {
	case installNamespace == "":
		return errors.New("--chart needs --install-namespace: the namespace of the release")
	case o.carryOn != "" && len(o.generated) == 0:
		return errCarryOn()
	}
	return nil
}

func readChart(command *cobra.Command, options renderOptions) (source.Rendered, error) {
	made, err := options.chartOptions(command)
	if err != nil {
		return source.Rendered{}, err
	}
	rendered, err := renderChart(command, chart.Renderer{Options: made}, options.chart.from)
	if err != nil {
		return source.Rendered{}, withDirectory(options.chart.from, err)
	}
	warnOf(command, options.chart.from, rendered.Warnings)
	return rendered, nil
}

// chartOptions reads the files of the flags, and the capabilities of the cluster.
func (o *renderOptions) chartOptions(command *cobra.Command) (chart.Options, error) {
	made, err := o.chart.options(o.installNamespace, o.extension)
	if err != nil || o.chart.kubeVersion != "" {
		return made, err
	}
	const advice = "--kube-version and --api-versions say what .Capabilities of the chart are"
	if o.target != "" {
		fmt.Fprintf(command.ErrOrStderr(), "warning: the cluster of --target is not asked what it serves: %s\n", advice)
		return made, nil
	}
	config, err := o.program.Cluster.Config()
	if errors.Is(err, client.ErrNoKubeconfig) {
		fmt.Fprintf(command.ErrOrStderr(), "warning: no kubeconfig leads to a cluster, so it is not asked what it serves: %s\n", advice)
		return made, nil
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(command.Context(), capabilitiesTimeout)
		defer cancel()
		made.Cluster, err = capabilities.Read(ctx, config)
	}
	if err != nil {
		return made, fmt.Errorf("asking the cluster what it serves, because charts see it in .Capabilities: %w; --kube-version renders without a cluster", err)
	}
	return made, nil
}

func (o *chartOptions) options(installNamespace, extension string) (chart.Options, error) {
	values, err := readValues(o.valueFiles)
	if err != nil {
		return chart.Options{}, err
	}
	generated, err := o.readGenerated(installNamespace)
	if err != nil {
		return chart.Options{}, err
	}
	made := chart.Options{
		Release: o.release, Namespace: installNamespace, Values: values,
		KubeVersion: o.kubeVersion, APIVersions: o.apiVersions, Generated: generated,
	}
	if made.Release == "" {
		made.Release = extension
	}
	return made, nil
}

func renderChart(command *cobra.Command, renderer chart.Renderer, from string) (source.Rendered, error) {
	info, err := os.Stat(from)
	if err != nil {
		return source.Rendered{}, err
	}
	if !info.IsDir() {
		archive, err := os.ReadFile(from)
		if err != nil {
			return source.Rendered{}, err
		}
		return renderer.RenderArchive(command.Context(), archive)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return source.Rendered{}, err
	}
	defer root.Close()
	return renderer.Render(command.Context(), root.FS())
}

// readValues merges files like Helm: maps are merged, and other values are replaced.
func readValues(files []string) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--values: %w", err)
		}
		var more map[string]any
		if err := yaml.UnmarshalStrict(texts.UTF8(text), &more); err != nil {
			return nil, fmt.Errorf("--values %s: %w", name, err)
		}
		merge(values, more)
	}
	return values, nil
}

func merge(into, more map[string]any) {
	for key, value := range more {
		inner, isMap := value.(map[string]any)
		if there, ok := into[key].(map[string]any); ok && isMap {
			merge(there, inner)
			continue
		}
		into[key] = value
	}
}

func (o *chartOptions) readGenerated(installNamespace string) ([]chart.GeneratedSecret, error) {
	previous := map[string]map[string]any{}
	if o.carryOn != "" {
		text, err := os.ReadFile(o.carryOn)
		if err != nil {
			return nil, fmt.Errorf("--carry-on: %w", err)
		}
		for _, document := range strings.Split("\n"+string(texts.UTF8(text)), "\n---") {
			if err := addSecrets(previous, document, installNamespace); err != nil {
				return nil, fmt.Errorf("--carry-on %s: %w", o.carryOn, err)
			}
		}
	}
	var generated []chart.GeneratedSecret
	for _, one := range o.generated {
		namespace, name, qualified := strings.Cut(one, "/")
		if !qualified {
			namespace, name = installNamespace, one
		}
		generated = append(generated, chart.GeneratedSecret{Namespace: namespace, Name: name, Previous: previous[namespace+"/"+name]})
	}
	return generated, nil
}

// addSecrets adds the Secrets of a document, which may be a list.
func addSecrets(to map[string]map[string]any, document, installNamespace string) error {
	content, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		return err
	}
	items, _ := object["items"].([]any)
	for _, item := range append(items, object) {
		secret, _ := item.(map[string]any)
		metadata, _ := secret["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		if secret["kind"] != "Secret" || name == "" {
			continue
		}
		namespace, _ := metadata["namespace"].(string)
		if namespace == "" {
			namespace = installNamespace
		}
		to[namespace+"/"+name] = secret
	}
	return nil
}
