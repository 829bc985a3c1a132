package catalogpackage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/text"
)

// These limits bound the text of one package, in bytes. Other parties write catalogs.
const (
	longestWord    = 250
	longestMessage = 2000
	// longestList bounds the channels, and the skipped versions, of one version.
	longestList = 200
)

// maxBytes bounds a package that is read. The largest package of OperatorHub has one or two
// megabytes.
const maxBytes = 32 << 20

// NewGetOptions returns the query parameters. The subresource has no subpath.
func (endpoint) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.CatalogPackageOptions{}, false, ""
}

// optionsOf reads the query, and refuses parameters that the subresource does not support.
func optionsOf(options runtime.Object, has ...string) (*v1alpha1.CatalogPackageOptions, error) {
	query, ok := options.(*v1alpha1.CatalogPackageOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading the query: got a %T", options))
	}
	given := map[string][]string{"catalog": {query.Catalog}, "channel": query.Channel, "from": {query.From}, "to": {query.To}, "version": query.Version}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if value := strings.Join(given[name], ","); value != "" && !slices.Contains(has, name) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s=%q: this subresource has no such parameter: want one of %s", name, value, strings.Join(has, ", ")))
		}
	}
	return query, nil
}

func (e endpoint) offer(name string, query *v1alpha1.CatalogPackageOptions) (inventory.Offer, error) {
	at, err := e.known()
	if err != nil {
		return inventory.Offer{}, err
	}
	offers := at.Offers(name)
	if len(offers) == 0 {
		return inventory.Offer{}, notFound(at, name)
	}
	if query.Catalog == "" {
		return offers[0], nil
	}
	var there []string
	for _, one := range offers {
		if one.Catalog.Name == query.Catalog {
			return one, nil
		}
		there = append(there, one.Catalog.Name)
	}
	return inventory.Offer{}, apierrors.NewBadRequest(fmt.Sprintf("catalog=%q: this catalog does not have package %s: want one of %s", query.Catalog, name, strings.Join(there, ", ")))
}

// read reads the whole package, and checks that it has the requested channels.
func (e endpoint) read(name string, query *v1alpha1.CatalogPackageOptions) (inventory.Offer, *fbc.Config, error) {
	from, err := e.offer(name, query)
	if err != nil {
		return from, nil, err
	}
	if from.Package.Bytes > maxBytes {
		return from, nil, apierrors.NewBadRequest(fmt.Sprintf("package %s of catalog %s is too large to be read: it has %d bytes, and at most %d are allowed", name, from.Catalog.Name, from.Package.Bytes, maxBytes))
	}
	config, err := from.Catalog.Index.Package(name)
	if err == nil && config == nil {
		err = fmt.Errorf("the index of catalog %s lists package %s, but does not contain it", from.Catalog.Name, name)
	}
	if err != nil {
		return from, nil, apierrors.NewInternalError(err)
	}
	for _, wanted := range query.Channel {
		if !slices.ContainsFunc(config.Channels, func(one fbc.Channel) bool { return one.Name == wanted }) {
			return from, nil, apierrors.NewBadRequest(fmt.Sprintf("channel=%q: package %s of catalog %s has no such channel: want one of %s", wanted, name, from.Catalog.Name, cell(channelNames(from))))
		}
	}
	return from, config, nil
}

func channelNames(from inventory.Offer) []string {
	var names []string
	for _, one := range from.Package.Channels {
		names = append(names, one.Name)
	}
	return names
}

// named returns the metadata of an answer about a package.
func named(from inventory.Offer) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: from.Package.Name}
}

func word(s string) string { return text.Line(s, longestWord) }

func words(all []string) []string {
	var out []string
	for _, one := range all[:min(len(all), longestList)] {
		out = append(out, word(one))
	}
	return out
}

func deprecationOf(node *graph.Node) *v1alpha1.Deprecation {
	if node == nil || !node.Deprecated {
		return nil
	}
	message := text.Line(node.Message, longestMessage)
	return deprecation(&message)
}

// IconREST serves the subresource icon, the picture of a package. It is not a field of the package,
// because it may be larger than all other fields.
type IconREST struct{ endpoint }

// New returns an empty icon.
func (*IconREST) New() runtime.Object { return &v1alpha1.CatalogPackageIcon{} }

// Get returns the icon of a package.
func (r *IconREST) Get(_ context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := optionsOf(options, "catalog")
	if err != nil {
		return nil, err
	}
	from, err := r.offer(name, query)
	if err != nil {
		return nil, err
	}
	icon, err := from.Catalog.Index.Icon(name)
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	case icon == nil:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("catalogpackages/icon"), name)
	}
	return &v1alpha1.CatalogPackageIcon{ObjectMeta: named(from), Catalog: from.Catalog.Name, MediaType: word(icon.MediaType), Data: icon.Data}, nil
}
