package fbc

import "encoding/json"

// Schemas that this package decodes. Documents of other schemas are kept unchanged.
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

const (
	PropertyPackage         = "olm.package"
	PropertyGVK             = "olm.gvk"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyPackageRequired = "olm.package.required"
	PropertyConstraint      = "olm.constraint"
	PropertyCSVMetadata     = "olm.csv.metadata"
	PropertyBundleObject    = "olm.bundle.object"
)

// Package is a document olm.package.
type Package struct {
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel,omitempty"`
	Description    string `json:"description,omitempty"`
	Icon           *Icon  `json:"icon,omitempty"`
}

// Icon is the picture of a package. Data is base64 in the catalog.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is a document olm.channel: a part of the upgrade graph.
type Channel struct {
	Name    string  `json:"name"`
	Package string  `json:"package"`
	Entries []Entry `json:"entries"`
}

// Entry adds a bundle to a channel and lists the bundles that it upgrades.
type Entry struct {
	Name string `json:"name"`
	// Replaces and Skips are names of bundles.
	Replaces string   `json:"replaces,omitempty"`
	Skips    []string `json:"skips,omitempty"`
	// SkipRange is a range of versions in the grammar of blang/semver.
	SkipRange string `json:"skipRange,omitempty"`
}

// Bundle is a document olm.bundle: one version of a package.
type Bundle struct {
	Name          string         `json:"name"`
	Package       string         `json:"package"`
	Image         string         `json:"image"`
	Properties    []Property     `json:"properties,omitempty"`
	RelatedImages []RelatedImage `json:"relatedImages,omitempty"`
}

// Property is a typed value of a bundle.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// RelatedImage is an image that a bundle uses.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Deprecations is a document olm.deprecations.
type Deprecations struct {
	Package string        `json:"package"`
	Entries []Deprecation `json:"entries"`
}

// Deprecation marks a package, a channel or a bundle as deprecated.
type Deprecation struct {
	Reference Reference `json:"reference"`
	Message   string    `json:"message"`
}

// Reference names the deprecated object: by one of the schemas above, and by name unless it is the
// package.
type Reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
}
