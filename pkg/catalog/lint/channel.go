package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// checkChannels checks that each channel has one head, from which all entries are reached.
func (l *linter) checkChannels(name string, own *fbc.Config) {
	seen := map[string]bool{}
	versions := graph.New(own, nil)
	for i := range own.Channels {
		channel := &own.Channels[i]
		say := func(severity Severity, format string, args ...any) {
			l.add(Finding{Severity: severity, Package: name, Channel: channel.Name, Message: fmt.Sprintf(format, args...)})
		}
		if seen[channel.Name] {
			say(Error, "the package has two channels of this name")
		}
		seen[channel.Name] = true
		if channel.Name == "" {
			say(Error, "a channel has no name")
		} else if problems := validation.IsDNS1123Subdomain(channel.Name); len(problems) > 0 {
			say(Warning, "a ClusterExtension cannot name this channel: %s", strings.Join(problems, "; "))
		}
		checkEntries(channel, versions, say)
		for j := range own.Channels {
			if j != i {
				checkMissing(channel, &own.Channels[j], versions, say)
			}
		}
	}
}

// checkMissing finds bundles of another channel that lie between two entries of this channel. A
// user who has installed such a bundle finds no upgrade here. It skips pre-releases, which channels
// often omit.
func checkMissing(channel, other *fbc.Channel, versions *graph.Graph, say func(Severity, string, ...any)) {
	entries := map[string]*fbc.Entry{}
	for i := range channel.Entries {
		entries[channel.Entries[i].Name] = &channel.Entries[i]
	}
	for i := range other.Entries {
		missing := &other.Entries[i]
		node := versions.Node(missing.Name)
		if entries[missing.Name] != nil || node == nil || !node.Readable || len(node.Version.Pre) > 0 || leaves(channel, missing.Name, node.Version.Version) {
			continue
		}
		for _, next := range channel.Entries {
			before, after := next.Replaces, versions.Node(next.Name)
			if before == "" || entries[before] == nil || after == nil || !after.Readable || after.Version.Compare(node.Version) <= 0 {
				continue
			}
			if missing.Replaces == before || slices.Contains(missing.Skips, before) {
				say(Warning, "%q of channel %s is missing: no path leads from it to %q; add it as an entry, or add a skipRange to %q that includes %s", missing.Name, other.Name, next.Name, next.Name, node.Version)
				break
			}
		}
	}
}

// leaves reports whether an entry of a channel upgrades a bundle.
func leaves(channel *fbc.Channel, name string, version semver.Version) bool {
	return slices.ContainsFunc(channel.Entries, func(entry fbc.Entry) bool {
		if entry.Replaces == name || slices.Contains(entry.Skips, name) {
			return true
		}
		admits, err := semver.ParseRange(entry.SkipRange)
		return err == nil && admits(version)
	})
}

func checkEntries(channel *fbc.Channel, versions *graph.Graph, say func(Severity, string, ...any)) {
	if len(channel.Entries) == 0 {
		say(Error, "the channel has no entries")
		return
	}
	entries := map[string]*fbc.Entry{}
	for i := range channel.Entries {
		entry := &channel.Entries[i]
		if entries[entry.Name] != nil {
			say(Error, "it has two entries %q", entry.Name)
		}
		entries[entry.Name] = entry
		checkEntry(entry, versions, say)
	}
	checkReplaces(entries, say)
}

func checkEntry(entry *fbc.Entry, versions *graph.Graph, say func(Severity, string, ...any)) {
	if versions.Node(entry.Name) == nil {
		say(Error, "entry %q has no bundle", entry.Name)
	}
	if slices.Contains(entry.Skips, "") {
		say(Error, "entry %q skips a bundle without a name", entry.Name)
	}
	if entry.SkipRange != "" {
		if _, err := semver.ParseRange(entry.SkipRange); err != nil {
			say(Warning, "entry %q: skipRange %q is no range and is ignored: %v", entry.Name, entry.SkipRange, err)
		}
	}
	own, replaced := versions.Node(entry.Name), versions.Node(entry.Replaces)
	if own != nil && replaced != nil && own.Readable && replaced.Readable && own.Version.Compare(replaced.Version) < 0 {
		say(Warning, "entry %q replaces %q, which is the higher version: OLM v1 takes this upgrade only when a range excludes %s", entry.Name, entry.Replaces, replaced.Version)
	}
}

// checkReplaces checks that exactly one entry, the head, is neither replaced nor skipped. Following
// replaces from the head must reach all entries that are not skipped. The last entry may replace a
// bundle that is not in the channel.
func checkReplaces(entries map[string]*fbc.Entry, say func(Severity, string, ...any)) {
	left, skipped := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if entry.Replaces != "" {
			left[entry.Replaces] = true
		}
		for _, name := range entry.Skips {
			left[name], skipped[name] = true, true
		}
	}
	var heads []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !left[name] {
			heads = append(heads, name)
		}
	}
	if len(heads) != 1 {
		say(Error, "%s", headsText(heads))
		return
	}
	reached := map[string]bool{}
	var way []string
	for at := entries[heads[0]]; at != nil; at = entries[at.Replaces] {
		if way = append(way, at.Name); reached[at.Name] {
			say(Error, "following replaces leads in a circle: %s", strings.Join(way[slices.Index(way, at.Name):], " -> "))
			return
		}
		reached[at.Name] = true
		if skipped[at.Replaces] {
			break
		}
	}
	var stranded []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !reached[name] && !skipped[name] {
			stranded = append(stranded, name)
		}
	}
	if len(stranded) > 0 {
		say(Error, "following replaces from the head %q does not reach %s", heads[0], strings.Join(stranded, ", "))
	}
}

func headsText(heads []string) string {
	if len(heads) == 0 {
		return "it has no head: every entry is replaced or skipped by another one"
	}
	return "it has more than one head: nothing replaces or skips " + strings.Join(heads, ", ")
}
