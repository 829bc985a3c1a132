// Package graph computes the upgrades in the channels of a package: successors of a version, the
// shortest upgrade path, the list of versions, and their printed form. It is pure.
package graph

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// By is the field of an entry that creates an upgrade.
type By string

// Fields of an entry that create upgrades.
const (
	Replaces  By = "replaces"
	Skips     By = "skips"
	SkipRange By = "skipRange"
)

// Installed is the installed bundle, from which upgrades start. It need not be in the catalog.
type Installed struct {
	Name    string
	Version fbc.Version
}

// Upgrade is one upgrade step to a bundle, by a field of its entry in a channel.
type Upgrade struct {
	Bundle  string
	Channel string
	By      By
}

// Graph is the upgrade graph of the channels of one package.
type Graph struct {
	config *fbc.Config
	// unlimited is true if New was called without channels.
	unlimited bool
	bundles   map[string]*Node
	// order has all bundles, best first; see Better.
	order []*Node
	// entries are the entries of the selected channels, by bundle.
	entries map[string][]entry
	// replacing and skipping are entries, by the bundles that they replace and skip.
	replacing, skipping map[string][]entry
	ranged              []entry
}

// Node is a bundle in the graph.
type Node struct {
	Bundle *fbc.Bundle
	// Version is the zero value unless Readable is set.
	Version  fbc.Version
	Readable bool
	// Deprecated is true if the catalog deprecates this bundle.
	Deprecated bool
	Message    string
	// Channels are all channels with the bundle, selected or not, sorted.
	Channels []string
}

// entry is an entry of a channel. admits is nil if the range is absent or invalid. Like OLM, it
// ignores an invalid range and uses the rest of the entry.
type entry struct {
	fbc.Entry
	channel string
	admits  semver.Range
}

// New returns the graph of one package. If channels are given, only their entries create upgrades;
// otherwise the entries of all channels do.
func New(config *fbc.Config, channels []string) *Graph {
	g := &Graph{
		config: config, unlimited: len(channels) == 0, bundles: map[string]*Node{}, entries: map[string][]entry{},
		replacing: map[string][]entry{}, skipping: map[string][]entry{},
	}
	g.addBundles()
	// Sorted by name, so that the results do not depend on the order in the catalog.
	for _, channel := range slices.SortedStableFunc(slices.Values(config.Channels), func(a, b fbc.Channel) int { return cmp.Compare(a.Name, b.Name) }) {
		g.addChannel(&channel, len(channels) == 0 || slices.Contains(channels, channel.Name))
	}
	for _, node := range g.order {
		slices.Sort(node.Channels)
		node.Channels = slices.Compact(node.Channels)
	}
	slices.SortFunc(g.order, Better)
	return g
}

func (g *Graph) addBundles() {
	deprecated := map[string]string{}
	for _, all := range g.config.Deprecations {
		for _, one := range all.Entries {
			if one.Reference.Schema == fbc.SchemaBundle {
				deprecated[one.Reference.Name] = one.Message
			}
		}
	}
	for i := range g.config.Bundles {
		node := &Node{Bundle: &g.config.Bundles[i]}
		if version, err := node.Bundle.Version(); err == nil {
			node.Version, node.Readable = version, true
		}
		node.Message, node.Deprecated = deprecated[node.Bundle.Name]
		g.bundles[node.Bundle.Name] = node
		g.order = append(g.order, node)
	}
}

func (g *Graph) addChannel(channel *fbc.Channel, counts bool) {
	for _, one := range slices.SortedStableFunc(slices.Values(channel.Entries), compareEntries) {
		if node := g.bundles[one.Name]; node != nil {
			node.Channels = append(node.Channels, channel.Name)
		}
		if !counts {
			continue
		}
		own := entry{Entry: one, channel: channel.Name}
		if one.SkipRange != "" {
			if admits, err := semver.ParseRange(one.SkipRange); err == nil {
				own.admits = admits
				g.ranged = append(g.ranged, own)
			}
		}
		g.entries[one.Name] = append(g.entries[one.Name], own)
		if one.Replaces != "" {
			g.replacing[one.Replaces] = append(g.replacing[one.Replaces], own)
		}
		for _, skipped := range one.Skips {
			g.skipping[skipped] = append(g.skipping[skipped], own)
		}
	}
}

// compareEntries sorts the entries of a channel. A duplicate name is an error in the catalog; the
// full order keeps results stable.
func compareEntries(a, b fbc.Entry) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Replaces, b.Replaces), cmp.Compare(a.SkipRange, b.SkipRange), slices.Compare(a.Skips, b.Skips))
}

// Better compares nodes: not deprecated first, then readable versions, then the highest version and
// release, then the name.
func Better(a, b *Node) int {
	return cmp.Or(trueLast(a.Deprecated, b.Deprecated), trueLast(!a.Readable, !b.Readable),
		b.Version.Compare(a.Version), cmp.Compare(a.Bundle.Name, b.Bundle.Name))
}

func trueLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Node returns a bundle by name; nil if the catalog does not have it.
func (g *Graph) Node(name string) *Node { return g.bundles[name] }

// Nodes returns all bundles, best first.
func (g *Graph) Nodes() []*Node { return g.order }

// Succeeds reports whether a bundle is an upgrade of the installed version, and by which field.
func (g *Graph) Succeeds(bundle string, installed Installed) (Upgrade, bool) {
	for _, one := range g.entries[bundle] {
		if by, ok := one.succeeds(installed); ok {
			return Upgrade{Bundle: bundle, Channel: one.channel, By: by}, true
		}
	}
	return Upgrade{}, false
}

func (e *entry) succeeds(installed Installed) (By, bool) {
	switch {
	case e.Replaces == installed.Name:
		return Replaces, true
	case slices.Contains(e.Skips, installed.Name):
		return Skips, true
	case e.admits != nil && e.admits(installed.Version.Version):
		return SkipRange, true
	}
	return "", false
}

// Successors returns the bundles of the catalog that are upgrades of the installed version, best
// first.
func (g *Graph) Successors(installed Installed) []Upgrade {
	return g.successors(installed, g.ranged, map[string]bool{installed.Name: true})
}

// successors skips known bundles, and checks only these ranges.
func (g *Graph) successors(installed Installed, ranged []entry, known map[string]bool) []Upgrade {
	found := map[string]Upgrade{}
	add := func(one entry, by By) {
		if _, twice := found[one.Name]; !twice && !known[one.Name] && g.bundles[one.Name] != nil {
			found[one.Name] = Upgrade{Bundle: one.Name, Channel: one.channel, By: by}
		}
	}
	for _, one := range g.replacing[installed.Name] {
		add(one, Replaces)
	}
	for _, one := range g.skipping[installed.Name] {
		add(one, Skips)
	}
	for _, one := range ranged {
		if one.admits(installed.Version.Version) {
			add(one, SkipRange)
		}
	}
	out := make([]Upgrade, 0, len(found))
	for _, one := range found {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Upgrade) int { return Better(g.bundles[a.Bundle], g.bundles[b.Bundle]) })
	return out
}

// Path returns the shortest upgrade path from the installed version to a bundle, without the
// installed version. OLM takes each step if its version is requested. Among several shortest paths,
// Path prefers the best versions. It is nil if there is no path, or if the bundle is installed.
func (g *Graph) Path(from Installed, to string) []Upgrade {
	if from.Name == to || g.bundles[to] == nil {
		return nil
	}
	return g.reach(from, to).To(to)
}

// Paths returns the shortest upgrade paths to all bundles.
func (g *Graph) Paths(from Installed) *Paths { return g.reach(from, "") }

// Paths are the shortest upgrade paths from the installed version.
type Paths struct {
	from     string
	cameBy   map[string]Upgrade
	cameFrom map[string]string
}

// reach searches paths until one reaches a bundle; "" searches all.
func (g *Graph) reach(from Installed, until string) *Paths {
	found := &Paths{from: from.Name, cameBy: map[string]Upgrade{}, cameFrom: map[string]string{}}
	known := map[string]bool{from.Name: true}
	// The loop visits every bundle, so it drops ranges that lead only to known bundles. Otherwise a
	// package with an upgrade from every bundle to all higher ones would be too expensive.
	ranged := slices.Clone(g.ranged)
	for reached := []Installed{from}; len(reached) > 0; {
		var next []Installed
		for _, at := range reached {
			steps := g.successors(at, ranged, known)
			for _, step := range steps {
				known[step.Bundle] = true
				found.cameBy[step.Bundle], found.cameFrom[step.Bundle] = step, at.Name
				if step.Bundle == until {
					return found
				}
				next = append(next, Installed{Name: step.Bundle, Version: g.bundles[step.Bundle].Version})
			}
			if len(steps) > 0 {
				ranged = slices.DeleteFunc(ranged, func(one entry) bool { return known[one.Name] })
			}
		}
		reached = next
	}
	return found
}

// To returns the path to a bundle; nil if there is none.
func (p *Paths) To(bundle string) []Upgrade {
	var path []Upgrade
	for at := bundle; at != p.from; at = p.cameFrom[at] {
		step, reached := p.cameBy[at]
		if !reached {
			return nil
		}
		path = append(path, step)
	}
	slices.Reverse(path)
	return path
}

// Cost estimates how many bytes of ranges are compared with versions to find all upgrades. It grows
// with the square of the package's size, and packages are untrusted.
func (g *Graph) Cost() int {
	cost := len(g.order)
	for _, list := range g.entries {
		cost += len(list)
		for _, one := range list {
			cost += len(one.Entry.Skips)
		}
	}
	for _, one := range g.ranged {
		cost += len(one.Entry.SkipRange) * len(g.order)
	}
	return cost
}
