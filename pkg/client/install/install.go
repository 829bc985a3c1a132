// Package install creates the objects that install a package of a catalog, and describes their
// effect, the same for every caller.
package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// catalogNameLabel is on each ClusterCatalog, with its name.
const catalogNameLabel = "olm.operatorframework.io/metadata.name"

// watchNamespace is the field of a bundle's configuration that names the watched namespace.
const watchNamespace = "watchNamespace"

// configInline is the only type of configuration in ClusterExtensions.
const configInline = "Inline"

// Request is a requested installation.
type Request struct {
	// Package is a package of a catalog. Name is the name of the extension. Namespace is an
	// existing namespace for its objects.
	Package, Name, Namespace string
	// Version is a range; empty means the highest version.
	Version string
	// Channels limit the versions; empty means all channels.
	Channels []string
	// Catalog is the name of the only allowed ClusterCatalog; empty means any.
	Catalog string
	// Approval is a value of extension.ApprovalAnnotation. Automatic and "" write no annotation.
	Approval string
	// ServiceAccount is the account whose rights install later versions.
	ServiceAccount string
	// WatchNamespace is the namespace that the operator watches; empty leaves that to Config.
	WatchNamespace string
	// Config is the configuration of the bundle, without WatchNamespace; nil for none.
	Config map[string]any
	// AcceptRequirements skips the check of the bundle's requirements.
	AcceptRequirements bool
}

// Check refuses names that no extension or package can have.
func (r Request) Check() error {
	for _, given := range []struct{ what, name string }{
		{"an extension", r.Name}, {"a package that can be installed", r.Package}, {"a namespace", r.Namespace},
	} {
		if wrong := validation.IsDNS1123Subdomain(given.name); len(wrong) > 0 {
			return fmt.Errorf("%q is no name of %s: %s", given.name, given.what, wrong[0])
		}
	}
	if configured, is := r.Config[watchNamespace]; is && r.WatchNamespace != "" && configured != r.WatchNamespace {
		return fmt.Errorf("the configuration has watchNamespace %v, and %q is asked for: name one namespace to watch", configured, r.WatchNamespace)
	}
	if len(r.Name) > v1alpha1.MaxExtensionNameLength {
		return fmt.Errorf("%q is no name of an extension: it has %d characters, at most %d are allowed", r.Name, len(r.Name), v1alpha1.MaxExtensionNameLength)
	}
	return nil
}

// Object returns the ClusterExtension for a request.
func (r Request) Object() (*unstructured.Unstructured, error) {
	e := &extension.Extension{
		TypeMeta:   metav1.TypeMeta{APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		Spec: extension.Spec{Namespace: r.Namespace, Source: extension.Source{
			SourceType: extension.SourceCatalog, Catalog: &extension.Catalog{PackageName: r.Package, Version: r.Version, Channels: r.Channels},
		}},
	}
	e.Annotations = map[string]string{}
	if r.Approval != "" && r.Approval != extension.ApprovalAutomatic {
		e.Annotations[extension.ApprovalAnnotation] = r.Approval
	}
	if r.AcceptRequirements {
		e.Annotations[extension.AcceptRequirementsAnnotation] = "true"
	}
	config := maps.Clone(r.Config)
	if r.WatchNamespace != "" {
		if config == nil {
			config = map[string]any{}
		}
		config[watchNamespace] = r.WatchNamespace
	}
	if len(config) > 0 {
		inline, err := json.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("encoding the configuration of %s: %w", r.Name, err)
		}
		e.Spec.Config = &extension.Config{ConfigType: configInline, Inline: inline}
	}
	if r.ServiceAccount != "" {
		e.Spec.ServiceAccount = &extension.ServiceAccount{Name: r.ServiceAccount}
	}
	if r.Catalog != "" {
		e.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{catalogNameLabel: r.Catalog}}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterExtension %s: %w", r.Name, err)
	}
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: fields}, nil
}

// InstalledAlready describes the effect of an extension if revisions have already installed its
// package.
func InstalledAlready(there catalogv1alpha1.InstalledVersion, name string) string {
	if there.Extension == name {
		return fmt.Sprintf("%s is installed already, by revisions of %s that an earlier ClusterExtension has left: the next revision takes their objects over", there.Version, name)
	}
	return fmt.Sprintf("%s is installed already, as %s: two extensions of one package would have the same objects, so the second one is refused", there.Version, there.Extension)
}

// Kinds returns the kinds of a package, as KIND.GROUP, each once.
func Kinds(offered *catalogv1alpha1.CatalogPackage) []string {
	var kinds []string
	for _, kind := range offered.Kinds {
		kinds = append(kinds, kind.Kind+"."+kind.Group)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
