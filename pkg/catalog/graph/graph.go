// Package graph knows the upgrades in the channels of a package: successors of a version, the
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

// The fields of an entry.
const (
	Replaces  By = "replaces"
	Skips     By = "skips"
	SkipRange By = "skipRange"
)

// Installed is a bundle from which upgrades are looked for. It need not be in the catalog.
type Installed struct {
	Name    string
	Version fbc.Version
}

// Upgrade is one step: to a bundle, by a field of its entry in a channel.
type Upgrade struct {
	Bundle  string
	Channel string
	By      By
}

// Graph is the upgrade graph of the channels of one package.
type Graph struct {
	config *fbc.Config
	// unlimited is true if it was made without channels.
	unlimited bool
	bundles   map[string]*Node
	// order has all bundles, the best first: not deprecated, then the highest version.
	order []*Node
	// entries are those of the channels that count, by the bundle that they are of.
	entries map[string][]entry
	// replacing and skipping are entries by what they replace and skip.
	replacing, skipping map[string][]entry
	ranged              []entry
}

// Node is a bundle in the graph.
type Node struct {
	Bundle *fbc.Bundle
	// Version is the zero value when Readable is not set.
	Version  fbc.Version
	Readable bool
	// Deprecated is true if the catalog says so of this bundle.
	Deprecated bool
	Message    string
	// Channels are all that it is in, sorted, and not only those that count.
	Channels []string
}

// entry is one of a channel. admits is nil when it has no range, or one that does not parse:
// such a range is left out silently, as OLM does, and the rest of the entry counts.
type entry struct {
	fbc.Entry
	channel string
	admits  semver.Range
}

// New makes the graph of one package. With channels, only their entries make upgrades;
// without, those of all channels do.
func New(config *fbc.Config, channels []string) *Graph {
	g := &Graph{
		config: config, unlimited: len(channels) == 0, bundles: map[string]*Node{}, entries: map[string][]entry{},
		replacing: map[string][]entry{}, skipping: map[string][]entry{},
	}
	g.addBundles()
	// By name, so that the answers do not depend on the order in the catalog.
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

// compareEntries sorts the entries of a channel. A name twice is an error of the catalog, and
// still gives the same answer each time.
func compareEntries(a, b fbc.Entry) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Replaces, b.Replaces), cmp.Compare(a.SkipRange, b.SkipRange), slices.Compare(a.Skips, b.Skips))
}

// Better compares nodes: those that are not deprecated first, then those with a version, then the
// highest version and release, then by name.
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

// Node returns a bundle, or nil when the catalog has none of that name.
func (g *Graph) Node(name string) *Node { return g.bundles[name] }

// Nodes returns all bundles, the best first.
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

// Successors returns the bundles of the catalog that are upgrades of the installed version, the best
// first.
func (g *Graph) Successors(installed Installed) []Upgrade {
	return g.successors(installed, g.ranged, map[string]bool{installed.Name: true})
}

// successors leaves out the bundles that are known, and looks at no other ranges than these.
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

// Path returns the shortest upgrade path from the installed version to a bundle, without the installed
// one. OLM takes each step when its version is requested. Among several shortest paths, it prefers the
// best versions. It is nil when there is no path, and when the bundle is installed.
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

// reach searches for paths until one reaches a bundle; "" searches for all.
func (g *Graph) reach(from Installed, until string) *Paths {
	found := &Paths{from: from.Name, cameBy: map[string]Upgrade{}, cameFrom: map[string]string{}}
	known := map[string]bool{from.Name: true}
	// Each bundle on the way is asked for, so what leads to known ones is left out: there may
	// be an upgrade from every bundle to all that are higher.
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

// To returns the path to a bundle, nil when there is none.
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

// Cost is about how many bytes of ranges are compared with versions to find all upgrades.
// It grows with the square of a package, and packages come from others.
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
