package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// Offer is a package in one catalog.
type Offer struct {
	Catalog *Catalog
	Package *index.Summary
}

// same reports whether two offers are equal for readers.
func (o Offer) same(other Offer) bool {
	return o.Catalog.Name == other.Catalog.Name && o.Catalog.Priority == other.Catalog.Priority &&
		o.Package.Digest == other.Package.Digest && maps.Equal(o.Catalog.Labels, other.Catalog.Labels)
}

// longestName is the maximum length of an object's name, in bytes.
const longestName = 253

// CheckName returns an error if a package's name cannot be the name of an object. Names come from
// the publisher of the catalog, and appear in URLs and on terminals.
func CheckName(name string) error {
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return errors.New(problems[0])
	}
	switch {
	case name == "":
		return errors.New("is empty")
	case len(name) > longestName:
		return fmt.Errorf("has %d bytes: at most %d are allowed", len(name), longestName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("has the character %U, which is a space or does not print", r)
		}
	}
	return nil
}

// Unlisted returns the packages whose names cannot be names of objects. They cannot be read by
// name.
func (c *Catalog) Unlisted() []string {
	var out []string
	if c.Index == nil {
		return nil
	}
	for _, row := range c.Index.Packages() {
		if CheckName(row.Name) != nil {
			out = append(out, row.Name)
		}
	}
	return out
}

// Packages returns the names of all listed packages, sorted. The list is shared: do not change it.
func (s *Snapshot) Packages() []string { return s.packages() }

func (s *Snapshot) listPackages() []string {
	var names []string
	for i := range s.catalogs {
		names = slices.AppendSeq(names, maps.Keys(s.catalogs[i].listed()))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// listed returns the packages of a catalog that can be listed, by name.
func (c *Catalog) listed() map[string]*index.Summary {
	if !c.readable() {
		return nil
	}
	rows := c.Index.Packages()
	out := make(map[string]*index.Summary, len(rows))
	for i := range rows {
		if CheckName(rows[i].Name) == nil {
			out[rows[i].Name] = &rows[i]
		}
	}
	return out
}

// Offers returns the catalogs that have a package, sorted by priority, highest first, and then by
// name. The first catalog is the one that is used.
func (s *Snapshot) Offers(name string) []Offer {
	if CheckName(name) != nil {
		return nil
	}
	var out []Offer
	for i := range s.catalogs {
		if one := &s.catalogs[i]; one.readable() {
			if row := one.Index.Find(name); row != nil {
				out = append(out, Offer{Catalog: one, Package: row})
			}
		}
	}
	// The stable sort keeps catalogs of one priority sorted by name.
	slices.SortStableFunc(out, func(a, b Offer) int { return cmp.Compare(b.Catalog.Priority, a.Catalog.Priority) })
	return out
}

// Changed returns the names of the packages that differ between two snapshots, sorted: in content,
// in their catalogs, or in the catalogs' labels or priorities.
func Changed(from, to *Snapshot) []string {
	var suspects []string
	for i := range from.catalogs {
		suspects = slices.AppendSeq(suspects, maps.Keys(unlike(&from.catalogs[i], to.Catalog(from.catalogs[i].Name))))
	}
	for i := range to.catalogs {
		if from.Catalog(to.catalogs[i].Name) == nil {
			suspects = slices.AppendSeq(suspects, maps.Keys(to.catalogs[i].listed()))
		}
	}
	slices.Sort(suspects)
	return slices.DeleteFunc(slices.Compact(suspects), func(name string) bool {
		return slices.EqualFunc(from.Offers(name), to.Offers(name), Offer.same)
	})
}

// unlike returns the packages that differ between two catalogs. other may be nil.
func unlike(one, other *Catalog) map[string]*index.Summary {
	out := one.listed()
	if out == nil {
		out = map[string]*index.Summary{}
	}
	if other == nil {
		return out
	}
	isSame := one.readable() == other.readable() && one.Priority == other.Priority && maps.Equal(one.Labels, other.Labels)
	if isSame && one.Digest() == other.Digest() {
		return nil
	}
	for name, row := range other.listed() {
		if old := out[name]; isSame && old != nil && old.Digest == row.Digest {
			delete(out, name)
			continue
		}
		out[name] = row
	}
	return out
}

// Providers returns the packages with a bundle that provides a kind, sorted by name.
func (s *Snapshot) Providers(kind schema.GroupVersionKind) []Offer {
	var out []Offer
	for i := range s.catalogs {
		for _, row := range s.catalogs[i].listed() {
			for _, one := range row.Kinds {
				if schema.GroupVersionKind(one) == kind {
					out = append(out, Offer{Catalog: &s.catalogs[i], Package: row})
					break
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Package.Name, b.Package.Name), cmp.Compare(b.Catalog.Priority, a.Catalog.Priority), cmp.Compare(a.Catalog.Name, b.Catalog.Name))
	})
	return out
}

// ProviderNames returns the packages that provide a bundle's requirement, a package or a kind, from
// any catalog: sorted, without duplicates. It is for bundle.Options.Providers.
func (s *Snapshot) ProviderNames(name string, kind schema.GroupVersionKind) []string {
	if name != "" {
		if len(s.Offers(name)) > 0 {
			return []string{name}
		}
		return nil
	}
	var names []string
	for _, one := range s.Providers(kind) {
		names = append(names, one.Package.Name)
	}
	return slices.Compact(names)
}

// ForResolver reads a package from all catalogs, for the resolver.
func (s *Snapshot) ForResolver(name string) []resolve.Catalog {
	out := make([]resolve.Catalog, 0, len(s.catalogs))
	for i := range s.catalogs {
		one := &s.catalogs[i]
		asked := resolve.Catalog{Name: one.Name, Labels: one.Labels, Priority: one.Priority, Unavailable: one.Unavailable}
		if !one.Unavailable {
			asked.Config, asked.Err = one.read(name)
		}
		out = append(out, asked)
	}
	return out
}

func (c *Catalog) read(name string) (*fbc.Config, error) {
	switch {
	case c.Index != nil:
		return c.Index.Package(name)
	case c.Err != nil:
		return nil, fmt.Errorf("catalog %s cannot be read: %w", c.Name, c.Err)
	}
	return nil, fmt.Errorf("catalog %s has not been read yet", c.Name)
}
