package fbc

import (
	"context"
	"io"
	"io/fs"
	"slices"
)

// Config is a catalog, or its part for one package.
type Config struct {
	Packages     []Package
	Channels     []Channel
	Bundles      []Bundle
	Deprecations []Deprecations
	// Others are documents of other schemas, or without a schema.
	Others []Document
}

// Add reads a document into the config.
func (c *Config) Add(d *Document) error {
	switch d.Schema {
	case SchemaPackage:
		return add(d, &c.Packages)
	case SchemaChannel:
		return add(d, &c.Channels)
	case SchemaBundle:
		return add(d, &c.Bundles)
	case SchemaDeprecations:
		return add(d, &c.Deprecations)
	}
	if err := d.Check(); err != nil {
		return err
	}
	kept := *d
	kept.JSON = slices.Clone(d.JSON)
	c.Others = append(c.Others, kept)
	return nil
}

func add[T any](d *Document, to *[]T) error {
	var one T
	if err := d.Decode(&one); err != nil {
		return err
	}
	*to = append(*to, one)
	return nil
}

// Empty reports whether there are no documents.
func (c *Config) Empty() bool {
	return len(c.Packages)+len(c.Channels)+len(c.Bundles)+len(c.Deprecations)+len(c.Others) == 0
}

// Load reads a whole stream.
func Load(ctx context.Context, from io.Reader, file string, limits Limits) (*Config, error) {
	config := &Config{}
	return config, Read(ctx, from, file, limits, config.Add)
}

// LoadDirectory reads a whole directory.
func LoadDirectory(ctx context.Context, root fs.FS, limits Limits) (*Config, error) {
	config := &Config{}
	return config, ReadDirectory(ctx, root, limits, config.Add)
}

// ByPackage splits a catalog by package. As in OLM v1, the last of several documents of a package
// with the same schema and name counts, and so does the last olm.deprecations of a package.
func (c *Config) ByPackage() map[string]*Config {
	out := map[string]*Config{}
	of := func(name string) *Config {
		if out[name] == nil {
			out[name] = &Config{}
		}
		return out[name]
	}
	for _, one := range c.Packages {
		of(one.Name).Packages = []Package{one}
	}
	channels, bundles := places{}, places{}
	for _, one := range c.Channels {
		own := of(one.Package)
		own.Channels = put(own.Channels, one, channels, place{one.Package, one.Name})
	}
	for _, one := range c.Bundles {
		own := of(one.Package)
		own.Bundles = put(own.Bundles, one, bundles, place{one.Package, one.Name})
	}
	for _, one := range c.Deprecations {
		of(one.Package).Deprecations = []Deprecations{one}
	}
	for _, one := range c.Others {
		if one.Package != "" {
			of(one.Package).Others = append(of(one.Package).Others, one)
		}
	}
	return out
}

// places maps documents to their index in the list of their package.
type (
	place  struct{ pkg, name string }
	places map[place]int
)

// put replaces the element of the same name, or appends a new one.
func put[T any](list []T, one T, known places, at place) []T {
	if i, found := known[at]; found {
		list[i] = one
		return list
	}
	known[at] = len(list)
	return append(list, one)
}

// Package returns the part of one package; nil if there is none.
func (c *Config) Package(name string) *Config { return c.ByPackage()[name] }
