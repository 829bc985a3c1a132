package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// chosen returns the best candidate. If its version cannot be parsed, chosen fails instead of
// taking the next best, which no user requested.
func (r *resolver) chosen(own *view) (*Resolution, error) {
	winner := own.best()
	for _, node := range own.candidates[1:] {
		rule := Lower
		if node.Deprecated && !winner.Deprecated {
			rule = DeprecatedBundle
		}
		r.refuse(own, node, rule)
	}
	if !winner.Readable {
		_, err := winner.Bundle.Version()
		return nil, fmt.Errorf("error getting resolved bundle version for bundle %q: %w", winner.Bundle.Name, err)
	}
	return &Resolution{
		Bundle: winner.Bundle, Version: winner.Version, Catalog: own.catalog.Name, Channel: r.channelOf(own, winner),
		Deprecation: deprecationOf(own.catalog.Config, r.request.Channels, winner.Bundle.Name),
		Reason:      r.why(own, winner), Refused: r.nearest(), Counts: r.counts,
	}, nil
}

// channelOf returns the channel that leads to the bundle.
func (r *resolver) channelOf(own *view, node *graph.Node) string {
	if installed, err := r.installed(); err == nil && installed != nil {
		if upgrade, ok := own.graph.Succeeds(node.Bundle.Name, *installed); ok {
			return upgrade.Channel
		}
	}
	first := graph.DefaultOf(own.catalog.Config)
	best := ""
	for _, name := range node.Channels {
		if len(r.request.Channels) > 0 && !slices.Contains(r.request.Channels, name) {
			continue
		}
		if name == first {
			return name
		}
		best = cmp.Or(best, name)
	}
	return best
}

func deprecationOf(config *fbc.Config, channels []string, bundle string) Deprecation {
	var out Deprecation
	for _, all := range config.Deprecations {
		for _, one := range all.Entries {
			switch one.Reference.Schema {
			case fbc.SchemaPackage:
				out.Package = &one
			case fbc.SchemaChannel:
				if len(channels) == 0 || slices.Contains(channels, one.Reference.Name) {
					out.Channels = append(out.Channels, one)
				}
			case fbc.SchemaBundle:
				if one.Reference.Name == bundle {
					out.Bundle = &one
				}
			}
		}
	}
	return out
}
