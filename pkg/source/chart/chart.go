// Package chart renders phased objects from a Helm chart. Helm's own engine renders it, in a second
// process with limits (package template). Hooks become phases. Values that would differ at each
// rendering are refused, or generated once and kept.
//
// Equal charts and options render equal bytes. docs/reference/charts.md lists accepted and refused
// content, and differences from Helm.
package chart

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Renderer renders Helm charts.
type Renderer struct {
	Options Options
}

var _ source.Renderer = Renderer{}

// Options configure the installation of a chart.
type Options struct {
	// Release is the name of the release in templates.
	Release string
	// Namespace is the namespace of the release, and of namespaced objects that set no namespace.
	// The chart does not create it.
	Namespace string
	// Values override the chart's values.
	Values map[string]any
	// Integers keeps integers in Values, as operators pass them to Helm. Otherwise they become
	// floating point, as in a values file.
	Integers bool
	// Cluster has the cluster's capabilities for templates; nil uses the defaults of Helm's
	// libraries.
	Cluster *template.Capabilities
	// KubeVersion replaces the version of the cluster. APIVersions (example.com/v1,
	// example.com/v1/Lamp) are added to the served versions.
	KubeVersion string
	APIVersions []string
	// Generated are the Secrets whose values templates may generate randomly.
	Generated []GeneratedSecret
	// Limits limit the rendering process. Zero values are the defaults.
	Limits template.Limits
	// Program is the program that renders, by calling template.RunProcess; empty for the running
	// program.
	Program string
}

const (
	DefaultTime   = 30 * time.Second
	DefaultMemory = 1 << 30
	DefaultOutput = 64 << 20
)

func (o Options) limits() template.Limits {
	limits := o.Limits
	if limits.Time <= 0 {
		limits.Time = DefaultTime
	}
	if limits.Memory <= 0 {
		limits.Memory = DefaultMemory
	}
	if limits.Output <= 0 {
		limits.Output = DefaultOutput
	}
	return limits
}

// Render renders an unpacked chart with Chart.yaml at the root. Errors in templates and manifests
// are a *directory.Errors.
func (r Renderer) Render(ctx context.Context, fsys fs.FS) (source.Rendered, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return source.Rendered{}, err
	}
	return r.render(ctx, template.Request{Files: files})
}

// RenderArchive renders an archive in the format of `helm package`.
func (r Renderer) RenderArchive(ctx context.Context, archive []byte) (source.Rendered, error) {
	if len(archive) > maxChartBytes {
		return source.Rendered{}, fmt.Errorf("the archive is larger than %d MiB", maxChartBytes>>20)
	}
	return r.render(ctx, template.Request{Archive: archive})
}

func (r Renderer) render(ctx context.Context, request template.Request) (source.Rendered, error) {
	if err := r.Options.validate(); err != nil {
		return source.Rendered{}, err
	}
	answer, err := r.execute(ctx, request)
	if err != nil {
		return source.Rendered{}, err
	}
	out := source.Rendered{Package: answer.Name, Version: answer.Version, KubeVersion: answer.KubeVersion, Notes: answer.Notes}
	for _, text := range answer.Warnings {
		out.Warnings = append(out.Warnings, source.Warning{Message: text})
	}
	var objects objects
	if objects.definitions, err = directory.ReadTexts(ctx, texts(answer.Definitions), unchecked(&out)); err != nil {
		return source.Rendered{}, err
	}
	if objects.manifests, err = r.readManifests(ctx, answer, &out); err != nil {
		return source.Rendered{}, err
	}
	if err := objects.sortHooks(&out); err != nil {
		return source.Rendered{}, err
	}
	if err := objects.each(scopes(objects, r.Options, &out).place, keep); err != nil {
		return source.Rendered{}, err
	}
	if err := objects.check(&out); err != nil {
		return source.Rendered{}, err
	}
	out.Phases, err = objects.phases()
	if err == nil && source.Count(out.Phases) == 0 {
		err = errors.New("the chart makes no manifests with these values")
	}
	return out, err
}

func (o Options) validate() error {
	if problems := validation.IsDNS1123Subdomain(o.Release); len(problems) > 0 {
		return fmt.Errorf("release %q: %s", o.Release, problems[0])
	}
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", o.Namespace, problems[0])
	}
	return nil
}

// UnknownError reports that a template needed a fact that the cluster did not return. A later
// rendering may succeed.
type UnknownError struct{ err error }

// Error implements error.
func (e *UnknownError) Error() string { return e.err.Error() }

// Unwrap returns the error of the template.
func (e *UnknownError) Unwrap() error { return e.err }

// VersionError reports that a chart needs another version of Kubernetes than the cluster has.
// Rendering may succeed after an upgrade of the cluster.
type VersionError struct {
	err error
	// Wanted is the version range that the chart states.
	Wanted string
}

// Error implements error.
func (e *VersionError) Error() string { return e.err.Error() }

func (r Renderer) execute(ctx context.Context, request template.Request) (template.Answer, error) {
	request.Release, request.Namespace, request.Values = r.Options.Release, r.Options.Namespace, r.Options.Values
	request.Integers = r.Options.Integers
	request.Cluster, request.KubeVersion, request.APIVersions = r.Options.Cluster, r.Options.KubeVersion, r.Options.APIVersions
	if request.Generate = len(r.Options.Generated) > 0; request.Generate {
		for _, one := range r.Options.Generated {
			if one.Previous != nil {
				request.Known = append(request.Known, one.Previous)
			}
		}
	}
	answer, err := r.run(ctx, request)
	if err != nil {
		return answer, err
	}
	switch {
	case answer.Unknown:
		return answer, &UnknownError{located(answer.Error)}
	case answer.OtherKubernetes:
		return answer, &VersionError{located(answer.Error), answer.KubeVersion}
	case answer.Error != "":
		return answer, located(answer.Error)
	}
	return answer, nil
}

// unchecked returns options for reading objects that are changed before they are checked.
func unchecked(out *source.Rendered) directory.Options {
	return directory.Options{Unchecked: true, AsHelm: true, Warn: directory.WarnInto(out)}
}

func texts(files []template.File) []directory.Text {
	out := make([]directory.Text, len(files))
	for i, file := range files {
		out[i] = directory.Text(file)
	}
	return out
}

// objects are the objects of a chart, in the order of their rollout.
type objects struct {
	// definitions are from the folder crds, and are applied first.
	definitions []directory.Located
	before      []hook
	manifests   []directory.Located
	after       []hook
}

func (o *objects) each(changes ...func(directory.Located) (directory.Located, error)) error {
	change := func(object *directory.Located) (err error) {
		for _, one := range changes {
			if *object, err = one(*object); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range o.definitions {
		if err := change(&o.definitions[i]); err != nil {
			return err
		}
	}
	for i := range o.manifests {
		if err := change(&o.manifests[i]); err != nil {
			return err
		}
	}
	for _, hooks := range [][]hook{o.before, o.after} {
		for i := range hooks {
			if err := change(&hooks[i].Located); err != nil {
				return err
			}
		}
	}
	return nil
}

// check checks all objects together, because definitions define the fields of custom resources.
func (o *objects) check(out *source.Rendered) error {
	var all []directory.Located
	if err := o.each(func(one directory.Located) (directory.Located, error) {
		all = append(all, one)
		return one, nil
	}); err != nil {
		return err
	}
	if err := once(all); err != nil {
		return err
	}
	checked, err := directory.Check(all, directory.Options{AsHelm: true, Warn: directory.WarnInto(out)})
	if err != nil {
		return err
	}
	next := 0
	return o.each(func(directory.Located) (directory.Located, error) {
		next++
		return checked[next-1], nil
	})
}

// once refuses two objects of one identity: with Helm, the order of the applies would decide which
// one wins.
func once(all []directory.Located) error {
	first := map[manifest.ID]directory.Located{}
	for _, one := range all {
		if other, twice := first[one.ID]; twice {
			return fail(one, "%s is already made by %s:%d", one.ID, other.File, other.Line)
		}
		first[one.ID] = one
	}
	return nil
}

// phases returns the definitions, the hooks before, all other objects sorted by kind, and the hooks
// after.
func (o *objects) phases() ([]source.Phase, error) {
	var phases []source.Phase
	if len(o.definitions) > 0 {
		phases = append(phases, source.Phase{Name: "chart-crds", Objects: plain(o.definitions)})
	}
	phases = append(phases, hookPhases("before", o.before)...)
	sorted, err := source.Sort(plain(o.manifests))
	if err != nil {
		return nil, err
	}
	phases = append(phases, sorted...)
	return append(phases, hookPhases("after", o.after)...), nil
}

func plain(located []directory.Located) []manifest.Object {
	out := make([]manifest.Object, len(located))
	for i := range located {
		out[i] = located[i].Object
	}
	return out
}

// fail returns an error about an object, with its place in the output of a template.
func fail(at directory.Located, format string, args ...any) error {
	return &directory.Errors{List: []*directory.Error{{File: at.File, Line: at.Line, Message: fmt.Sprintf(format, args...)}}}
}

func describe(object manifest.Object) string {
	return strings.TrimSpace(object.Kind + " " + object.Name)
}
