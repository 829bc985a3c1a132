package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// Version is one row of the list of versions of a package.
type Version struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version"`
	// Channels are the channels with the bundle, sorted.
	Channels []string `json:"channels,omitempty"`
	// Replaces, Skips and SkipRanges are the values of its entries in all channels, sorted, without
	// duplicates.
	Replaces   []string `json:"replaces,omitempty"`
	Skips      []string `json:"skips,omitempty"`
	SkipRanges []string `json:"skipRanges,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	// Message is the reason of the deprecation.
	Message string `json:"message,omitempty"`
	// Unsupported is the reason why OLM v1 cannot install the bundle; empty if it can.
	Unsupported string `json:"unsupported,omitempty"`
	Image       string `json:"image,omitempty"`
}

// Versions returns the versions of the package in the selected channels, highest first, including
// deprecated ones. A graph without selected channels returns every bundle.
func (g *Graph) Versions() []Version {
	nodes := slices.Clone(g.order)
	slices.SortStableFunc(nodes, func(a, b *Node) int {
		if c := trueLast(!a.Readable, !b.Readable); c != 0 {
			return c
		}
		return b.Version.Compare(a.Version)
	})
	all := g.countsAll()
	var out []Version
	for _, node := range nodes {
		entries := g.entries[node.Bundle.Name]
		if len(entries) == 0 && !all {
			continue
		}
		out = append(out, g.row(node, entries))
	}
	return out
}

func (g *Graph) countsAll() bool {
	if g.unlimited {
		return true
	}
	for i := range g.config.Channels {
		for _, one := range g.config.Channels[i].Entries {
			if !slices.ContainsFunc(g.entries[one.Name], func(e entry) bool { return e.channel == g.config.Channels[i].Name }) {
				return false
			}
		}
	}
	return true
}

func (g *Graph) row(node *Node, entries []entry) Version {
	row := Version{
		Bundle: node.Bundle.Name, Channels: node.Channels, Deprecated: node.Deprecated, Message: node.Message,
		Unsupported: Unsupported(node.Bundle), Image: node.Bundle.Image,
	}
	if node.Readable {
		row.Version = node.Version.String()
	}
	for _, one := range entries {
		if one.Replaces != "" {
			row.Replaces = append(row.Replaces, g.ShortName(one.Replaces))
		}
		for _, skipped := range one.Skips {
			row.Skips = append(row.Skips, g.ShortName(skipped))
		}
		if one.Entry.SkipRange != "" {
			row.SkipRanges = append(row.SkipRanges, one.Entry.SkipRange)
		}
	}
	for _, list := range []*[]string{&row.Replaces, &row.Skips, &row.SkipRanges} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return row
}

// ShortName returns the version of a bundle, or its name if it is not in the catalog.
func (g *Graph) ShortName(bundle string) string {
	if node := g.bundles[bundle]; node != nil && node.Readable {
		return node.Version.String()
	}
	return bundle
}

// Unsupported returns the reason why OLM v1 cannot install a bundle: it has dependencies, provides
// an aggregated API, or cannot watch all namespaces. It is empty if the catalog shows no such
// reason.
func Unsupported(bundle *fbc.Bundle) string {
	var reasons []string
	required := map[string]int{}
	for _, property := range bundle.Properties {
		switch property.Type {
		case fbc.PropertyPackageRequired, fbc.PropertyGVKRequired, fbc.PropertyConstraint:
			if required[property.Type]++; required[property.Type] == 1 {
				reasons = append(reasons, "has a dependency: "+dependency(property))
			}
		case fbc.PropertyCSVMetadata:
			reasons = append(reasons, unsupportedCSV(property.Value)...)
		}
	}
	return strings.Join(reasons, "; ")
}

// KindsOf returns the kinds that a bundle declares to provide, in its order.
func KindsOf(bundle *fbc.Bundle) []metav1.GroupVersionKind {
	var out []metav1.GroupVersionKind
	for _, property := range bundle.Properties {
		var kind metav1.GroupVersionKind
		if property.Type == fbc.PropertyGVK && json.Unmarshal(property.Value, &kind) == nil && kind.Kind != "" {
			out = append(out, kind)
		}
	}
	return out
}

func dependency(property fbc.Property) string {
	var value struct{ PackageName, VersionRange, Group, Version, Kind string }
	if err := json.Unmarshal(property.Value, &value); err == nil {
		switch {
		case property.Type == fbc.PropertyPackageRequired && value.PackageName != "":
			return strings.TrimSpace(fmt.Sprintf("package %s %s", value.PackageName, value.VersionRange))
		case property.Type == fbc.PropertyGVKRequired && value.Kind != "":
			return fmt.Sprintf("kind %s of %s/%s", value.Kind, value.Group, value.Version)
		}
	}
	return property.Type
}

// unsupportedCSV checks the part of the CSV that the index keeps.
func unsupportedCSV(metadata json.RawMessage) []string {
	var csv struct {
		InstallModes []struct {
			Type      string
			Supported bool
		}
		APIServiceDefinitions struct{ Owned []struct{ Name string } }
	}
	if err := json.Unmarshal(metadata, &csv); err != nil {
		return nil
	}
	var reasons []string
	if len(csv.APIServiceDefinitions.Owned) > 0 {
		reasons = append(reasons, "provides an aggregated API")
	}
	var supported []string
	for _, mode := range csv.InstallModes {
		if mode.Supported {
			supported = append(supported, mode.Type)
		}
	}
	if len(csv.InstallModes) > 0 && !slices.Contains(supported, "AllNamespaces") {
		reasons = append(reasons, strings.TrimSpace("cannot watch all namespaces: supports "+strings.Join(supported, ", ")))
	}
	return reasons
}
