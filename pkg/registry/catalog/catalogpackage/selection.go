package catalogpackage

import (
	"cmp"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/storage"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
)

// chosen is the selection of a request.
//
// The label selector and the field catalog select catalogs. The request gets each package from the
// preferred catalog among them. The other fields filter the result. So -l catalog=community shows
// all packages of this catalog, as an extension with this selector sees them.
type chosen struct {
	labels labels.Selector
	fields fields.Selector
	// catalogs are the requirements of the field catalog.
	catalogs fields.Requirements
	// only is the single requested name, or "" for all names.
	only string
}

func everything() *chosen {
	return &chosen{labels: labels.Everything(), fields: fields.Everything()}
}

// chosenBy returns the selection of a request.
func chosenBy(options *metainternalversion.ListOptions) *chosen {
	c := everything()
	if options == nil {
		return c
	}
	if options.LabelSelector != nil {
		c.labels = options.LabelSelector
	}
	if options.FieldSelector != nil {
		c.fields = options.FieldSelector
		c.only, _ = c.fields.RequiresExactMatch(metav1.ObjectNameField)
		for _, one := range c.fields.Requirements() {
			if one.Field == v1alpha1.CatalogField {
				c.catalogs = append(c.catalogs, one)
			}
		}
	}
	return c
}

// all reports whether the selection contains everything.
func (c *chosen) all() bool { return c.labels.Empty() && c.fields.Empty() }

// names returns the names of packages that may be selected.
func (c *chosen) names(at *inventory.Snapshot) []string {
	if c.only != "" {
		return []string{c.only}
	}
	return at.Packages()
}

// packageOf returns a package from a snapshot. It returns nil if the package does not exist or is
// not selected.
func (c *chosen) packageOf(at *inventory.Snapshot, name string, installed map[string][]v1alpha1.InstalledVersion) *v1alpha1.CatalogPackage {
	offers := at.Offers(name)
	for _, offer := range offers {
		marks := labelsOf(offer.Catalog)
		if !c.labels.Matches(marks) || !c.fromCatalog(offer.Catalog.Name) {
			continue
		}
		if !c.fields.Matches(fieldsOf(offer)) {
			return nil
		}
		found := newPackage(offer, offers)
		found.Labels = marks
		found.ResourceVersion = at.Version().String()
		found.Installed = installed[name]
		return found
	}
	return nil
}

func (c *chosen) fromCatalog(name string) bool {
	for _, one := range c.catalogs {
		if (one.Value == name) == (one.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// labelsOf returns the labels of a catalog, and its name as a label.
func labelsOf(from *inventory.Catalog) labels.Set {
	out := labels.Set{}
	for key, value := range from.Labels {
		out[key] = value
	}
	// The name of an object may be longer than a label.
	if len(validation.IsValidLabelValue(from.Name)) == 0 {
		out[v1alpha1.CatalogLabel] = from.Name
	}
	return out
}

func fieldsOf(offer inventory.Offer) fields.Set {
	return fields.Set{
		metav1.ObjectNameField:       offer.Package.Name,
		v1alpha1.CatalogField:        offer.Catalog.Name,
		v1alpha1.DefaultChannelField: offer.Package.DefaultChannel,
		v1alpha1.LatestField:         offer.Package.Latest,
		v1alpha1.DeprecatedField:     strconv.FormatBool(offer.Package.Deprecation != nil),
	}
}

func newPackage(offer inventory.Offer, all []inventory.Offer) *v1alpha1.CatalogPackage {
	row := offer.Package
	out := &v1alpha1.CatalogPackage{
		ObjectMeta: metav1.ObjectMeta{Name: row.Name},
		Catalog:    offer.Catalog.Name, Description: row.Description, DefaultChannel: row.DefaultChannel, Latest: row.Latest,
		Deprecation: deprecation(row.Deprecation), VersionCount: int32(row.Bundles),
		Catalogs: make([]v1alpha1.PackageCatalog, 0, len(all)),
	}
	add := func(one inventory.Offer) {
		out.Catalogs = append(out.Catalogs, v1alpha1.PackageCatalog{Name: one.Catalog.Name, Priority: one.Catalog.Priority, Latest: one.Package.Latest})
	}
	for _, one := range all {
		add(one)
	}
	for _, one := range row.Channels {
		out.Channels = append(out.Channels, v1alpha1.PackageChannel{Name: one.Name, Latest: one.Latest, Deprecation: deprecation(one.Deprecation)})
	}
	for _, one := range row.Versions {
		out.Versions = append(out.Versions, v1alpha1.PackageVersion{Version: one.Version, Channels: one.Channels, Deprecation: deprecation(one.Deprecation), Unsupported: one.Unsupported})
	}
	for _, one := range row.Kinds {
		out.Kinds = append(out.Kinds, v1alpha1.PackageKind{Group: one.Group, Version: one.Version, Kind: one.Kind})
	}
	return out
}

func deprecation(message *string) *v1alpha1.Deprecation {
	if message == nil {
		return nil
	}
	return &v1alpha1.Deprecation{Message: cmp.Or(*message, "the catalog does not say why")}
}

// at returns the snapshot for the resourceVersion of a list: the current snapshot, or the exact
// version if requested.
func (e endpoint) at(options *metainternalversion.ListOptions) (*inventory.Snapshot, error) {
	current, err := e.known()
	if err != nil || options == nil || options.ResourceVersion == "" || options.ResourceVersion == "0" {
		return current, err
	}
	wanted, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	found := e.catalogs.At(wanted)
	switch {
	case options.ResourceVersionMatch != metav1.ResourceVersionMatchExact:
		if found == nil && wanted > current.Version() {
			return nil, tooNew(wanted, current)
		}
		return current, nil
	case found == nil && wanted > current.Version():
		return nil, tooNew(wanted, current)
	case found == nil:
		return nil, gone(wanted, current)
	}
	return found, nil
}

// parseVersion parses a resourceVersion. Its error equals the library's error.
func parseVersion(version string) (inventory.Version, error) {
	parsed, err := storage.APIObjectVersioner{}.ParseResourceVersion(version)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	return inventory.Version(parsed), nil
}
