package compare

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// Effect is the effect of a change on extensions without a version range.
type Effect struct {
	// Channel is empty for extensions that select no channels.
	Channel string `json:"channel,omitempty"`
	// Installed are the installed versions with this effect, highest first; empty for new
	// installations.
	Installed []string `json:"installed,omitempty"`
	// Before and After are the version after the upgrade, or the reason why there is no upgrade.
	Before string `json:"before"`
	After  string `json:"after"`
	// Stuck is true if extensions cannot be resolved any more.
	Stuck bool `json:"stuck,omitempty"`
}

func effects(name string, before, after *fbc.Config) []Effect {
	out := effectsOf(name, "", before, after)
	for _, channel := range append(missing(channels(before), channels(after)), shared(before, after)...) {
		out = append(out, effectsOf(name, channel, before, after)...)
	}
	return out
}

func shared(before, after *fbc.Config) []string {
	now := channels(after)
	var out []string
	for channel := range channels(before) {
		if now[channel] {
			out = append(out, channel)
		}
	}
	slices.Sort(out)
	return out
}

func effectsOf(name, channel string, before, after *fbc.Config) []Effect {
	request := resolve.Request{Package: name}
	if channel != "" {
		request.Channels = []string{channel}
	}
	var out []Effect
	add := func(installed string, effect Effect) {
		if effect.Before == effect.After {
			return
		}
		i := slices.IndexFunc(out, func(e Effect) bool {
			return e.Before == effect.Before && e.After == effect.After && installed != "" && len(e.Installed) > 0
		})
		if i < 0 {
			i, out = len(out), append(out, effect)
		}
		if installed != "" {
			out[i].Installed = append(out[i].Installed, installed)
		}
	}
	add("", effectOf(request, before, after))
	for _, node := range byVersion(graph.New(before, nil)) {
		if !node.Readable || channel != "" && !slices.Contains(node.Channels, channel) {
			continue
		}
		request.Installed = &resolve.Installed{Name: node.Bundle.Name, Version: node.Version.String()}
		add(node.Version.String(), effectOf(request, before, after))
	}
	for i := range out {
		out[i].Channel = channel
	}
	return out
}

func effectOf(request resolve.Request, before, after *fbc.Config) Effect {
	from, noneBefore := resolveVersion(request, before)
	to, noneAfter := resolveVersion(request, after)
	return Effect{Before: from, After: to, Stuck: noneAfter != nil && noneBefore == nil}
}

func resolveVersion(request resolve.Request, config *fbc.Config) (string, error) {
	resolution, err := resolve.Resolve(request, []resolve.Catalog{{Name: "catalog", Config: config}})
	var none *resolve.Error
	switch {
	case errors.As(err, &none) && request.Installed != nil:
		return "nowhere: nothing succeeds it", err
	case errors.As(err, &none):
		return "nothing", err
	case err != nil:
		return "nowhere: " + err.Error(), err
	}
	if request.Installed != nil && resolution.Bundle.Name == request.Installed.Name {
		return "stays", nil
	}
	return resolution.Version.String(), nil
}

// sameGraph reports whether resolution has the same results.
func sameGraph(a, b *fbc.Config) bool {
	return slices.Equal(seen(a), seen(b))
}

// seen lists the facts that affect resolution: entries of channels, bundles and deprecations.
func seen(config *fbc.Config) []string {
	var out []string
	for i := range config.Channels {
		for _, e := range config.Channels[i].Entries {
			skips := slices.Sorted(slices.Values(e.Skips))
			out = append(out, fmt.Sprintf("%q %q %q %q %q", config.Channels[i].Name, e.Name, e.Replaces, skips, e.SkipRange))
		}
	}
	for i := range config.Bundles {
		version, _ := config.Bundles[i].Version()
		out = append(out, fmt.Sprintf("%q %s %s", config.Bundles[i].Name, version, graph.Unsupported(&config.Bundles[i])))
	}
	for name := range deprecated(config) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Text writes the changes for users.
func (c Changes) Text(to io.Writer) error {
	var b strings.Builder
	for _, list := range []struct {
		word  string
		names []string
	}{{"new package", c.AddedPackages}, {"removed package", c.RemovedPackages}} {
		for _, name := range list.names {
			fmt.Fprintf(&b, "%s: %s\n", name, list.word)
		}
	}
	for i := range c.Packages {
		c.Packages[i].text(&b)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (p *Package) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s:\n", p.Name)
	if p.DefaultChannel != nil {
		fmt.Fprintf(b, "  default channel: %s, was %s\n", cmp.Or(p.DefaultChannel.After, "none"), cmp.Or(p.DefaultChannel.Before, "none"))
	}
	for _, list := range []struct {
		word  string
		names []string
	}{
		{"new channels", p.AddedChannels}, {"removed channels", p.RemovedChannels}, {"new versions", p.AddedVersions}, {"removed versions", p.RemovedVersions},
		{"changed content", p.ChangedVersions}, {"now deprecated", p.Deprecated}, {"no longer deprecated", p.Undeprecated},
	} {
		if len(list.names) > 0 {
			fmt.Fprintf(b, "  %s: %s\n", list.word, strings.Join(list.names, ", "))
		}
	}
	for _, effect := range p.Effects {
		fmt.Fprintf(b, "  %s\n", effect.String())
	}
}

// String returns a sentence such as "with 1.0.0, 1.1.0 installed: goes to 1.2.0, before: stays".
func (e Effect) String() string {
	who := "a new installation"
	if len(e.Installed) > 0 {
		who = "with " + strings.Join(e.Installed, ", ") + " installed"
	}
	if e.Channel != "" {
		who += " in channel " + e.Channel
	}
	said := fmt.Sprintf("%s: %s, before: %s", who, cmp.Or(e.After, "nothing"), cmp.Or(e.Before, "nothing"))
	if e.Stuck {
		said += " (stuck)"
	}
	return said
}
