package catalogpackage

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxVersions bounds the listed versions. The largest package of OperatorHub has some hundreds.
const maxVersions = 2000

// VersionsREST serves the subresource versions.
type VersionsREST struct {
	endpoint
	versionsTable
}

var (
	_ rest.GetterWithOptions = &VersionsREST{}
	_ rest.TableConvertor    = &VersionsREST{}
	_ rest.GetterWithOptions = &GraphREST{}
	_ rest.TableConvertor    = &GraphREST{}
	_ rest.GetterWithOptions = &IconREST{}
)

// New returns an empty list.
func (*VersionsREST) New() runtime.Object { return &v1alpha1.CatalogPackageVersions{} }

// Get returns all versions of a package, highest first.
func (r *VersionsREST) Get(_ context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := optionsOf(options, "catalog", "channel")
	if err != nil {
		return nil, err
	}
	from, config, err := r.read(name, query)
	if err != nil {
		return nil, err
	}
	drawn := graph.New(config, query.Channel)
	all := drawn.Versions()
	out := &v1alpha1.CatalogPackageVersions{ObjectMeta: named(from), Catalog: from.Catalog.Name, Versions: []v1alpha1.BundleVersion{}}
	out.Omitted = int32(max(0, len(all)-maxVersions))
	for _, one := range all[:min(len(all), maxVersions)] {
		out.Versions = append(out.Versions, v1alpha1.BundleVersion{
			Version: word(one.Version), Bundle: word(one.Bundle), Channels: words(one.Channels),
			Replaces: words(one.Replaces), Skips: words(one.Skips), SkipRanges: words(one.SkipRanges),
			Deprecation: deprecationOf(drawn.Node(one.Bundle)), Unsupported: text.Line(one.Unsupported, longestMessage), Image: text.Line(one.Image, longestMessage),
		})
	}
	return out, nil
}

type versionsTable struct{}

// ConvertToTable prints one row for each version.
func (versionsTable) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	found, ok := object.(*v1alpha1.CatalogPackageVersions)
	if !ok {
		return nil, fmt.Errorf("printing a table of versions: got a %T", object)
	}
	out := &metav1.Table{}
	for _, one := range found.Versions {
		supported := "true"
		if one.Unsupported != "" {
			supported = text.Clip("false: "+one.Unsupported, messageCell)
		}
		out.Rows = append(out.Rows, printing.Row([]any{
			one.Version, cell(one.Channels), cell(one.Replaces), cell(slices.Concat(one.Skips, one.SkipRanges)), deprecated(one.Deprecation), supported,
			one.Bundle, one.Image,
		}, &v1alpha1.CatalogPackageVersions{ObjectMeta: metav1.ObjectMeta{Name: found.Name}}))
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Version", Type: "string", Description: "The version, as its bundle says."},
		{Name: "Channels", Type: "string", Description: "Channels that have it."},
		{Name: "Replaces", Type: "string", Description: "Versions that this one replaces."},
		{Name: "Skips", Type: "string", Description: "Other versions and ranges that can be upgraded to this one."},
		{Name: "Deprecated", Type: "string", Description: "Why the version should not be used, as the catalog says."},
		{Name: "Supported", Type: "string", Description: "Whether it can be installed, as far as the catalog tells."},
		{Name: "Bundle", Type: "string", Priority: 1, Description: "Name of its bundle."},
		{Name: "Image", Type: "string", Priority: 1, Description: "Image of its bundle."},
	}), nil
}
