package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
	"github.com/penstock-project/penstock/pkg/text"
)

// Marks that Helm sets on each object of a release. The manifest does not have them.
const (
	ManagedByLabel      = "app.kubernetes.io/managed-by"
	ManagedByHelm       = "Helm"
	NameAnnotation      = "meta.helm.sh/release-name"
	NamespaceAnnotation = "meta.helm.sh/release-namespace"

	policyAnnotation = "helm.sh/resource-policy"
	// TeardownAnnotation is Penstock's annotation for objects that are not deleted.
	TeardownAnnotation = "penstock.dev/teardown-policy"
)

// InNamespace reports whether a kind is namespaced. Known is false for a kind that the cluster does
// not serve.
type InNamespace func(kind schema.GroupVersionKind) (inNamespace, known bool, err error)

// Render renders the manifest of a revision into phased objects, as Helm has applied them. It sets
// the namespace of the release in namespaced objects that have none, and Helm's marks in all
// objects. Hooks are left out with a warning.
func (r Release) Render(ctx context.Context, where InNamespace) (source.Rendered, error) {
	out := source.Rendered{Package: r.Chart.Metadata.Name, Version: r.Chart.Metadata.Version}
	r.warnOfHooks(&out)
	located, err := directory.ReadTexts(ctx, []directory.Text{{Name: r.file(), Data: []byte(r.Manifest)}}, directory.Options{Unchecked: true, AsHelm: true, Warn: directory.WarnInto(&out)})
	if err != nil {
		return source.Rendered{}, err
	}
	defined := directory.Scopes(located)
	for i := range located {
		if located[i].Object, err = r.place(located[i].Object, where, defined); err != nil {
			return source.Rendered{}, fmt.Errorf("%s:%d: %w", located[i].File, located[i].Line, err)
		}
	}
	located, err = directory.Check(located, directory.Options{AsHelm: true, Warn: directory.WarnInto(&out)})
	if err != nil {
		return source.Rendered{}, err
	}
	objects := make([]manifest.Object, len(located))
	for i := range located {
		objects[i] = located[i].Object
	}
	out.Phases, err = source.Sort(objects)
	return out, err
}

func (r Release) file() string { return fmt.Sprintf("%s.v%d", r.Name, r.Version) }

func (r Release) warnOfHooks(out *source.Rendered) {
	tests, others := 0, []string(nil)
	for _, hook := range r.Hooks {
		if hook.Test() {
			tests++
			continue
		}
		others = append(others, fmt.Sprintf("%s %s (%s)", hook.Kind, hook.Name, strings.Join(hook.Events, ", ")))
	}
	warn := func(message string) {
		out.Warnings = append(out.Warnings, source.Warning{File: r.file(), Message: message})
	}
	if tests > 0 {
		warn(fmt.Sprintf("test hooks are left out: %d", tests))
	}
	if len(others) > 0 {
		slices.Sort(others)
		warn("hooks are not part of a revision, and stay with Helm: " + strings.Join(others, ", "))
	}
	definitions := 0
	for _, file := range r.Chart.Files {
		if strings.HasPrefix(file.Name, "crds/") {
			definitions++
		}
	}
	if definitions > 0 {
		warn(fmt.Sprintf("%s of the folder crds are not part of a release, and are not adopted", text.Count(definitions, "file")))
	}
}

// place changes an object of the manifest as Helm did.
func (r Release) place(object manifest.Object, where InNamespace, defined map[schema.GroupKind]bool) (manifest.Object, error) {
	content, err := applycheck.Decode(object.JSON)
	if err != nil {
		return object, err
	}
	content = runtime.DeepCopyJSON(content)
	inNamespace, known, err := where(object.GroupVersionKind())
	if err != nil {
		return object, err
	}
	if !known {
		if inNamespace, known = defined[object.GroupKind()]; !known {
			// The kind of an older revision may no longer exist. Its object is not rolled out
			// unchanged.
			inNamespace = !strings.HasPrefix(object.Kind, "Cluster")
		}
	}
	metadata := content["metadata"].(map[string]any)
	switch {
	case !inNamespace:
		delete(metadata, "namespace") // the server ignores the chart's value
	case object.Namespace == "":
		metadata["namespace"] = r.Namespace
	}
	labels := entries(metadata, "labels")
	labels[ManagedByLabel] = ManagedByHelm
	annotations := entries(metadata, "annotations")
	annotations[NameAnnotation], annotations[NamespaceAnnotation] = r.Name, r.Namespace
	if policy, _ := annotations[policyAnnotation].(string); strings.EqualFold(strings.TrimSpace(policy), "keep") {
		annotations[TeardownAnnotation] = "Orphan"
	}
	return manifest.Canonical(content)
}

// entries returns a map in metadata, and creates it if it is absent.
func entries(metadata map[string]any, field string) map[string]any {
	found, ok := metadata[field].(map[string]any)
	if !ok {
		found = map[string]any{}
		metadata[field] = found
	}
	return found
}
