package template

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/util/version"
)

// render renders a chart as Helm does, but replaces functions whose result differs at each
// rendering.
func render(request Request) (Answer, error) {
	chart, err := load(request)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Name: chart.Name(), Version: chart.Metadata.Version, KubeVersion: chart.Metadata.KubeVersion}
	capabilities, err := capabilitiesOf(request)
	if err != nil {
		return Answer{}, err
	}
	if answer.Warnings, err = checkChart(chart, request, capabilities); err != nil {
		return Answer{}, err
	}
	if err := chartutil.ProcessDependencies(chart, request.Values); err != nil {
		return Answer{}, fmt.Errorf("reading the dependencies: %w", err)
	}
	for _, definition := range chart.CRDObjects() {
		name := strings.TrimPrefix(definition.Filename, chart.Name()+"/")
		answer.Definitions = append(answer.Definitions, File{Name: name, Data: definition.File.Data})
	}
	functions := newFunctions(request)
	if answer.Manifests, answer.Notes, err = execute(chart, request, capabilities, functions); err != nil {
		return Answer{}, err
	}
	if request.Generate {
		functions.again()
		notes := ""
		if answer.Again, notes, err = execute(chart, request, capabilities, functions); err != nil {
			return Answer{}, err
		}
		if notes != answer.Notes {
			answer.Notes = "" // they contain a generated value, which must not be shown
		}
	}
	return answer, nil
}

func load(request Request) (*chartv2.Chart, error) {
	if len(request.Archive) > 0 {
		chart, err := loader.LoadArchive(bytes.NewReader(request.Archive))
		if err != nil {
			return nil, fmt.Errorf("reading the archive: %w", err)
		}
		return chart, nil
	}
	files := make([]*archive.BufferedFile, len(request.Files))
	for i, file := range request.Files {
		files[i] = &archive.BufferedFile{Name: file.Name, Data: bytes.TrimPrefix(file.Data, []byte("\ufeff"))}
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return chart, nil
}

// checkChart refuses a chart that cannot be installed, and warns of possible problems.
func checkChart(chart *chartv2.Chart, request Request, capabilities *common.Capabilities) (warnings []string, err error) {
	if chart.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library: it has nothing to install", chart.Name())
	}
	if chart.Metadata.Deprecated {
		warnings = append(warnings, fmt.Sprintf("chart %s is deprecated", chart.Name()))
	}
	for _, wanted := range chart.Metadata.Dependencies {
		if !slices.ContainsFunc(chart.Dependencies(), func(there *chartv2.Chart) bool { return there.Name() == wanted.Name }) {
			return nil, fmt.Errorf("chart %s depends on %s %s, which is not in its folder charts: run `helm dependency build` first", chart.Name(), wanted.Name, wanted.Version)
		}
	}
	if wanted := chart.Metadata.KubeVersion; wanted != "" && !compatible(wanted, capabilities.KubeVersion.String()) {
		text := fmt.Sprintf("chart %s needs Kubernetes %s, and is rendered for %s", chart.Name(), wanted, capabilities.KubeVersion.String())
		if request.KubeVersion != "" || request.Cluster != nil {
			return nil, &versionError{text, wanted}
		}
		warnings = append(warnings, text)
	}
	return warnings, nil
}

// versionError reports that a chart needs another version of Kubernetes.
type versionError struct{ text, wanted string }

func (e *versionError) Error() string { return e.text }

// compatible reports whether a version of Kubernetes is in a range, with or without the
// distribution's suffix. The library treats v1.31.2-gke.5 as a pre-release, which is not in
// >=1.25.0.
func compatible(wanted, cluster string) bool {
	if chartutil.IsCompatibleRange(wanted, cluster) {
		return true
	}
	plain, err := version.ParseGeneric(cluster)
	return err == nil && chartutil.IsCompatibleRange(wanted, fmt.Sprintf("v%d.%d.%d", plain.Major(), plain.Minor(), plain.Patch()))
}

// execute runs all templates. It returns their output by name, and the notes.
func execute(chart *chartv2.Chart, request Request, capabilities *common.Capabilities, functions *functions) (files []File, notes string, err error) {
	// The revision number and the previous state are constant, so that the same chart and values
	// render the same manifests in each revision.
	release := common.ReleaseOptions{Name: request.Release, Namespace: request.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValuesWithSchemaValidation(chart, request.Values, release, capabilities, true)
	if err != nil {
		return nil, "", fmt.Errorf("reading the values: %w", err)
	}
	if request.Cluster != nil && len(request.Cluster.Unknown) > 0 {
		values["Capabilities"] = partial(capabilities, request.Cluster.Unknown)
	}
	coalesced, err := values.Table("Values")
	if err != nil {
		return nil, "", fmt.Errorf("reading the values: %w", err)
	}
	if err := validate(chart, coalesced); err != nil {
		return nil, "", err
	}
	// The parent limits the time, and ends this process.
	made, err := engine.Engine{CustomTemplateFuncs: functions.all()}.RenderWithContext(context.Background(), chart, values)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if path.Base(name) == "NOTES.txt" || strings.TrimSpace(made[name]) == "" {
			continue
		}
		// Helm ends each document with a line break, which becomes part of a block scalar at the
		// end.
		text := strings.TrimSuffix(made[name], "\n") + "\n"
		files = append(files, File{Name: strings.TrimPrefix(name, chart.Name()+"/"), Data: []byte(text)})
	}
	return files, strings.TrimSpace(made[chart.Name()+"/templates/NOTES.txt"]), nil
}
