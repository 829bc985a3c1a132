// Package compare compares two images of a catalog: added and removed versions, and the versions to
// which extensions would upgrade automatically. It is pure.
package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// Changes are the differences between two images of a catalog.
type Changes struct {
	// AddedPackages and RemovedPackages are sorted.
	AddedPackages   []string  `json:"addedPackages,omitempty"`
	RemovedPackages []string  `json:"removedPackages,omitempty"`
	Packages        []Package `json:"packages,omitempty"`
}

// Package has the differences in a package that is in both images.
type Package struct {
	Name string `json:"name"`
	// DefaultChannel is nil if it is unchanged.
	DefaultChannel  *Change  `json:"defaultChannel,omitempty"`
	AddedChannels   []string `json:"addedChannels,omitempty"`
	RemovedChannels []string `json:"removedChannels,omitempty"`
	// AddedVersions and RemovedVersions are sorted, highest first.
	AddedVersions   []string `json:"addedVersions,omitempty"`
	RemovedVersions []string `json:"removedVersions,omitempty"`
	// ChangedVersions have the same name, and another image or other properties.
	ChangedVersions []string `json:"changedVersions,omitempty"`
	// Deprecated and Undeprecated name the package, channels or bundles.
	Deprecated   []string `json:"deprecated,omitempty"`
	Undeprecated []string `json:"undeprecated,omitempty"`
	// Effects are the installed versions whose upgrade changes.
	Effects []Effect `json:"effects,omitempty"`
}

// Change is a value before and after.
type Change struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Compare returns the differences. The order and the notation of documents do not matter.
func Compare(before, after *fbc.Config) Changes {
	old, now := before.ByPackage(), after.ByPackage()
	changes := Changes{AddedPackages: missing(now, old), RemovedPackages: missing(old, now)}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if now[name] == nil {
			continue
		}
		if one := comparePackage(name, old[name], now[name]); !one.empty() {
			changes.Packages = append(changes.Packages, one)
		}
	}
	return changes
}

// Empty reports whether there are no differences.
func (c Changes) Empty() bool {
	return len(c.AddedPackages)+len(c.RemovedPackages)+len(c.Packages) == 0
}

func (p *Package) empty() bool {
	return p.DefaultChannel == nil && len(p.AddedChannels)+len(p.RemovedChannels)+len(p.AddedVersions)+len(p.RemovedVersions)+
		len(p.ChangedVersions)+len(p.Deprecated)+len(p.Undeprecated)+len(p.Effects) == 0
}

// missing returns the keys of from that the other map lacks.
func missing[T any](from, in map[string]T) []string {
	var out []string
	for name := range from {
		if _, found := in[name]; !found {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func comparePackage(name string, before, after *fbc.Config) Package {
	one := Package{Name: name}
	if a, b := graph.DefaultOf(before), graph.DefaultOf(after); a != b {
		one.DefaultChannel = &Change{Before: a, After: b}
	}
	old, now := channels(before), channels(after)
	one.AddedChannels, one.RemovedChannels = missing(now, old), missing(old, now)
	one.compareBundles(before, after)
	gone, withdrawn := deprecated(before), deprecated(after)
	one.Deprecated, one.Undeprecated = missing(withdrawn, gone), missing(gone, withdrawn)
	// Upgrades depend only on the graph, which is unchanged for most packages of a new image.
	if !sameGraph(before, after) {
		one.Effects = effects(name, before, after)
	}
	return one
}

func channels(config *fbc.Config) map[string]bool {
	out := map[string]bool{}
	for i := range config.Channels {
		out[config.Channels[i].Name] = true
	}
	return out
}

func (p *Package) compareBundles(before, after *fbc.Config) {
	old, now := graph.New(before, nil), graph.New(after, nil)
	p.AddedVersions, p.RemovedVersions = versionsMissing(now, old), versionsMissing(old, now)
	for _, node := range byVersion(old) {
		if other := now.Node(node.Bundle.Name); other != nil && !sameBundle(node.Bundle, other.Bundle) {
			p.ChangedVersions = append(p.ChangedVersions, old.ShortName(node.Bundle.Name))
		}
	}
}

func versionsMissing(from, in *graph.Graph) []string {
	var out []string
	for _, node := range byVersion(from) {
		if in.Node(node.Bundle.Name) == nil {
			out = append(out, from.ShortName(node.Bundle.Name))
		}
	}
	return out
}

// byVersion returns the nodes, highest version first.
func byVersion(g *graph.Graph) []*graph.Node {
	return slices.SortedFunc(slices.Values(g.Nodes()), func(a, b *graph.Node) int {
		return cmp.Or(b.Version.Compare(a.Version), cmp.Compare(a.Bundle.Name, b.Bundle.Name))
	})
}

// sameBundle compares two bundles. The order of properties does not matter.
func sameBundle(a, b *fbc.Bundle) bool {
	return a.Image == b.Image && slices.Equal(propertySet(a), propertySet(b))
}

func propertySet(bundle *fbc.Bundle) []string {
	out := make([]string, 0, len(bundle.Properties))
	for _, property := range bundle.Properties {
		var plain any
		value := []byte(property.Value)
		if err := json.Unmarshal(value, &plain); err == nil {
			if encoded, err := json.Marshal(plain); err == nil {
				value = encoded // with sorted keys
			}
		}
		out = append(out, property.Type+" "+string(bytes.TrimSpace(value)))
	}
	slices.Sort(out)
	return out
}

// deprecated returns the deprecated parts: "the package", "channel x", "bundle y".
func deprecated(config *fbc.Config) map[string]bool {
	out := map[string]bool{}
	for _, all := range config.Deprecations {
		for _, one := range all.Entries {
			switch one.Reference.Schema {
			case fbc.SchemaPackage:
				out["the package"] = true
			case fbc.SchemaChannel:
				out["channel "+one.Reference.Name] = true
			case fbc.SchemaBundle:
				out["bundle "+one.Reference.Name] = true
			}
		}
	}
	return out
}
