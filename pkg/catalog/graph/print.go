package graph

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/text"
)

// Drawing is the machine-readable form of a graph.
type Drawing struct {
	Package        string    `json:"package"`
	DefaultChannel string    `json:"defaultChannel,omitempty"`
	Channels       []string  `json:"channels"`
	Versions       []Version `json:"versions"`
	Upgrades       []Edge    `json:"upgrades"`
	// Path is set if it was requested; it is empty if no upgrade path exists.
	Path *[]string `json:"path,omitempty"`
}

// Edge is an upgrade between two bundles. From may be a bundle that is not in the catalog.
type Edge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Channel string `json:"channel"`
	By      By     `json:"by"`
}

// Draw returns the machine-readable form, sorted.
func (g *Graph) Draw() Drawing {
	drawing := Drawing{Channels: g.channels(), Versions: g.Versions()}
	if len(g.config.Packages) > 0 {
		drawing.Package, drawing.DefaultChannel = g.config.Packages[0].Name, DefaultOf(g.config)
	}
	drawing.Upgrades, _ = g.Upgrades(math.MaxInt)
	return drawing
}

// Upgrades returns the single-step upgrades, sorted and at most limit, and the number of further
// ones.
func (g *Graph) Upgrades(limit int) (found []Edge, more int) {
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(g.entries)) {
		entries = append(entries, g.entries[name]...)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.channel, b.channel) })
	found = []Edge{}
	for _, one := range entries {
		edges := g.edges(one)
		slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.By, b.By)) })
		kept := edges[:min(len(edges), limit-len(found))]
		found, more = append(found, kept...), more+len(edges)-len(kept)
	}
	return found, more
}

// edges returns the upgrades to an entry's bundle. If several fields create the same upgrade, it
// uses the first one in OLM's order.
func (g *Graph) edges(to entry) []Edge {
	seen := map[string]bool{to.Name: true}
	var out []Edge
	add := func(from string, by By) {
		if from != "" && !seen[from] {
			seen[from] = true
			out = append(out, Edge{From: from, To: to.Name, Channel: to.channel, By: by})
		}
	}
	add(to.Replaces, Replaces)
	for _, skipped := range to.Entry.Skips {
		add(skipped, Skips)
	}
	if to.admits != nil {
		for _, node := range g.order {
			if node.Readable && to.admits(node.Version.Version) {
				add(node.Bundle.Name, SkipRange)
			}
		}
	}
	return out
}

func (g *Graph) channels() []string {
	seen := map[string]bool{}
	for _, list := range g.entries {
		for _, one := range list {
			seen[one.channel] = true
		}
	}
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(seen))))
}

// Entry is a bundle in a channel.
type Entry struct {
	Channel, Bundle string
	// UpgradeOf describes the upgrades of the entry: "replaces 1.4.1; skips 1.4.0".
	UpgradeOf string
}

// Entries returns the entries of the selected channels, by channel, highest version first.
func (g *Graph) Entries() []Entry {
	var out []Entry
	sorted := g.sortedEntries()
	for _, channel := range g.channels() {
		for _, one := range sorted[channel] {
			out = append(out, Entry{Channel: channel, Bundle: one.Name, UpgradeOf: strings.Join(g.upgradeOf(one), "; ")})
		}
	}
	return out
}

// Text prints the graph: the bundles of each channel, highest first, with the bundles they upgrade.
// It marks the installed version.
func (g *Graph) Text(to io.Writer, installed string) error {
	defaultChannel := DefaultOf(g.config)
	sorted := g.sortedEntries()
	for i, name := range g.channels() {
		if i > 0 {
			fmt.Fprintln(to)
		}
		if err := g.channelText(to, name, name == defaultChannel, sorted[name], installed); err != nil {
			return err
		}
	}
	return nil
}

func (g *Graph) channelText(to io.Writer, name string, isDefault bool, entries []entry, installed string) error {
	heading := "channel " + name
	if isDefault {
		heading += " (default)"
	}
	fmt.Fprintf(to, "%s: %s\n", heading, text.Count(len(entries), "bundle"))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, one := range entries {
		mark := " "
		if one.Name == installed {
			mark = "*"
		}
		fmt.Fprintf(table, "%s %s\t%s\n", mark, g.ShortName(one.Name), strings.Join(g.describe(one), "; "))
	}
	return table.Flush()
}

func (g *Graph) sortedEntries() map[string][]entry {
	out := map[string][]entry{}
	for _, list := range g.entries {
		for _, one := range list {
			out[one.channel] = append(out[one.channel], one)
		}
	}
	for _, entries := range out {
		slices.SortFunc(entries, func(a, b entry) int {
			nodeA, nodeB := g.bundles[a.Name], g.bundles[b.Name]
			if nodeA == nil || nodeB == nil {
				return cmp.Or(trueLast(nodeA == nil, nodeB == nil), cmp.Compare(a.Name, b.Name), compareEntries(a.Entry, b.Entry))
			}
			return cmp.Or(trueLast(!nodeA.Readable, !nodeB.Readable), nodeB.Version.Compare(nodeA.Version), cmp.Compare(a.Name, b.Name), compareEntries(a.Entry, b.Entry))
		})
	}
	return out
}

// describe returns the upgrades of an entry, and remarks about its bundle.
func (g *Graph) describe(one entry) []string {
	parts := g.upgradeOf(one)
	switch node := g.bundles[one.Name]; {
	case node == nil:
		parts = append(parts, "is not in the catalog")
	case node.Deprecated:
		parts = append(parts, strings.TrimSuffix("deprecated: "+strings.Join(strings.Fields(node.Message), " "), ": "))
	}
	return parts
}

func (g *Graph) upgradeOf(one entry) []string {
	var parts []string
	if one.Replaces != "" {
		parts = append(parts, "replaces "+g.ShortName(one.Replaces))
	}
	if len(one.Entry.Skips) > 0 {
		parts = append(parts, "skips "+g.list(one.Entry.Skips))
	}
	switch {
	case one.Entry.SkipRange != "" && one.admits == nil:
		parts = append(parts, fmt.Sprintf("skipRange %q is not understood", one.Entry.SkipRange))
	case one.Entry.SkipRange != "":
		parts = append(parts, "skips the range "+one.Entry.SkipRange)
	}
	return parts
}

const maxNames = 5

func (g *Graph) list(bundles []string) string {
	names := make([]string, 0, maxNames)
	for _, bundle := range bundles[:min(len(bundles), maxNames)] {
		names = append(names, g.ShortName(bundle))
	}
	out := strings.Join(names, ", ")
	if more := len(bundles) - maxNames; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// Describe returns the upgrades of a bundle in the selected channels: "replaces 1.4.1". It is empty
// if there are none.
func (g *Graph) Describe(bundle string) string {
	var parts []string
	for _, one := range g.entries[bundle] {
		for _, part := range g.upgradeOf(one) {
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// PathText names the versions of a path: "1.3.9, 1.4.1, 1.4.2".
func (g *Graph) PathText(path []Upgrade) string {
	names := make([]string, len(path))
	for i, step := range path {
		names[i] = step.Bundle
	}
	if len(names) > 2*maxNames {
		head := g.list(names[:maxNames])
		return fmt.Sprintf("%s, … %d more …, %s", head, len(names)-maxNames-1, g.ShortName(names[len(names)-1]))
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = g.ShortName(name)
	}
	return strings.Join(short, ", ")
}

// DefaultOf returns the default channel of a package; empty if there is none.
func DefaultOf(config *fbc.Config) string {
	if len(config.Packages) == 0 {
		return ""
	}
	return config.Packages[0].DefaultChannel
}
