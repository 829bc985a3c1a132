package index

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/text"
)

// Limits of a package's row in the table. The table is in memory, and catalogs are untrusted.
// Package reads the omitted parts.
const (
	// MostVersions, MostChannels and MostKinds limit the listed versions, channels and kinds.
	MostVersions = 100
	MostChannels = 100
	MostKinds    = 200

	// Limits in bytes.
	longestDescription = 120
	longestMessage     = 250
	longestWord        = 100
)

// Summary is the row of a package in the table. Its strings are single printable lines.
type Summary struct {
	// Name is the name in the catalog.
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// Channels are sorted by name.
	Channels []Channel `json:"channels,omitempty"`
	// Versions are sorted, highest first. They exclude bundles without a readable version.
	Versions []Version `json:"versions,omitempty"`
	// Latest is the version that is installed without a version range: the highest one that is not
	// deprecated.
	Latest string `json:"latest,omitempty"`
	// Bundles is the number of all bundles, including those that Versions omits.
	Bundles int `json:"bundles"`
	// Deprecation is nil if the catalog does not deprecate the package.
	Deprecation *string `json:"deprecation,omitempty"`
	// Description is one line of at most 120 bytes.
	Description string `json:"description,omitempty"`
	// Kinds are the kinds that all its bundles provide.
	Kinds []metav1.GroupVersionKind `json:"kinds,omitempty"`
	// Bytes is the size of the package when it is read.
	Bytes int64 `json:"bytes"`
	// Digest is equal in two indexes if the package has the same content, including its icon.
	Digest string `json:"digest"`

	Package segment `json:"package"`
	Icon    segment `json:"icon,omitzero"`
}

// Channel is a channel of a package.
type Channel struct {
	Name string `json:"name"`
	// Latest is the best version in the channel: the highest one that is not deprecated.
	Latest string `json:"latest,omitempty"`
	// Deprecation is nil if the catalog does not deprecate the channel.
	Deprecation *string `json:"deprecation,omitempty"`
}

// Version is a bundle of a package.
type Version struct {
	Version string `json:"version"`
	// Channels are the channels with the bundle, sorted.
	Channels []string `json:"channels,omitempty"`
	// Deprecation is nil if the catalog does not deprecate the bundle.
	Deprecation *string `json:"deprecation,omitempty"`
	// Unsupported is the reason why OLM v1 cannot install the bundle; empty if it can.
	Unsupported string `json:"unsupported,omitempty"`
}

func summary(name string, config *fbc.Config) Summary {
	row := Summary{Name: name, DefaultChannel: word(graph.DefaultOf(config)), Bundles: len(config.Bundles), Kinds: kinds(config)}
	drawn := graph.New(config, nil)
	nodes := drawn.Nodes()
	if len(nodes) > 0 && nodes[0].Readable {
		row.Latest = word(nodes[0].Version.String())
	}
	for _, one := range drawn.Versions() {
		if len(row.Versions) == MostVersions {
			break
		}
		if one.Version != "" {
			row.Versions = append(row.Versions, version(one))
		}
	}
	deprecations := map[fbc.Reference]*string{}
	for _, all := range config.Deprecations {
		for _, one := range all.Entries {
			message := text.Line(one.Message, longestMessage)
			if one.Reference.Schema == fbc.SchemaPackage {
				one.Reference.Name = ""
			}
			deprecations[one.Reference] = &message
		}
	}
	row.Deprecation = deprecations[fbc.Reference{Schema: fbc.SchemaPackage}]
	row.Channels = channels(config, nodes, deprecations)
	if len(config.Packages) > 0 {
		row.Description = firstSentence(config.Packages[0].Description)
	}
	return row
}

func version(one graph.Version) Version {
	row := Version{Version: word(one.Version), Unsupported: text.Line(one.Unsupported, longestMessage)}
	for _, channel := range one.Channels[:min(len(one.Channels), MostChannels)] {
		row.Channels = append(row.Channels, word(channel))
	}
	if one.Deprecated {
		message := text.Line(one.Message, longestMessage)
		row.Deprecation = &message
	}
	return row
}

// channels returns the channels. nodes are sorted best first, so the first bundle in a channel is
// its latest.
func channels(config *fbc.Config, nodes []*graph.Node, deprecations map[fbc.Reference]*string) []Channel {
	latest := map[string]string{}
	for _, node := range nodes {
		for _, channel := range node.Channels {
			if _, known := latest[channel]; !known && node.Readable {
				latest[channel] = node.Version.String()
			}
		}
	}
	var out []Channel
	for i := range config.Channels {
		name := config.Channels[i].Name
		out = append(out, Channel{Name: word(name), Latest: word(latest[name]), Deprecation: deprecations[fbc.Reference{Schema: fbc.SchemaChannel, Name: name}]})
	}
	slices.SortFunc(out, func(a, b Channel) int { return cmp.Compare(a.Name, b.Name) })
	return out[:min(len(out), MostChannels)]
}

func kinds(config *fbc.Config) []metav1.GroupVersionKind {
	seen := map[metav1.GroupVersionKind]bool{}
	var out []metav1.GroupVersionKind
	for i := range config.Bundles {
		for _, one := range graph.KindsOf(&config.Bundles[i]) {
			if one.Group, one.Version, one.Kind = word(one.Group), word(one.Version), word(one.Kind); !seen[one] {
				seen[one] = true
				out = append(out, one)
			}
		}
	}
	slices.SortFunc(out, func(a, b metav1.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return out[:min(len(out), MostKinds)]
}

func word(s string) string { return text.Line(s, longestWord) }

// compact shares equal strings between rows to save memory.
func compact(rows []Summary) {
	for i := range rows {
		row := &rows[i]
		row.Channels, row.Versions, row.Kinds = slices.Clip(row.Channels), slices.Clip(row.Versions), slices.Clip(row.Kinds)
		known := map[string]string{}
		for j := range row.Versions {
			one := &row.Versions[j]
			share(known, &one.Unsupported)
			share(known, one.Deprecation)
			one.Channels = slices.Clip(one.Channels)
			for k := range one.Channels {
				share(known, &one.Channels[k])
			}
			if j > 0 && slices.Equal(one.Channels, row.Versions[j-1].Channels) {
				one.Channels = row.Versions[j-1].Channels
			}
		}
		for j := range row.Kinds {
			share(known, &row.Kinds[j].Group)
			share(known, &row.Kinds[j].Version)
			share(known, &row.Kinds[j].Kind)
		}
	}
}

func share(known map[string]string, s *string) {
	if s == nil {
		return
	}
	if first, found := known[*s]; found {
		*s = first
		return
	}
	known[*s] = *s
}

// firstSentence returns the first line of Markdown that is not a heading or a picture, or else the
// first heading.
func firstSentence(markdown string) string {
	heading := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		plain := text.Line(strings.TrimLeft(line, "#*-_= "), longestDescription)
		switch {
		case plain == "", strings.HasPrefix(line, "!["), strings.HasPrefix(line, "[!"), strings.HasPrefix(line, "<"):
		case strings.HasPrefix(line, "#"):
			heading = cmp.Or(heading, plain)
		default:
			return plain
		}
	}
	return heading
}
