package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// Rule is the rule that refused a bundle.
type Rule string

// Rules, in the order in which they are applied.
const (
	NotInChannel        Rule = "NotInChannel"
	OutsideRange        Rule = "OutsideRange"
	NotSuccessor        Rule = "NotSuccessor"
	ClusterVersion      Rule = "ClusterVersion"
	Lower               Rule = "Lower"
	DeprecatedBundle    Rule = "Deprecated"
	DeprecatedInCatalog Rule = "DeprecatedInCatalog"
	LowerPriority       Rule = "LowerPriority"
)

// Rules returns all rules, in the order in which they are applied.
func Rules() []Rule {
	return []Rule{NotInChannel, OutsideRange, NotSuccessor, ClusterVersion, Lower, DeprecatedBundle, DeprecatedInCatalog, LowerPriority}
}

// MaxRefused limits the refused bundles in an answer.
const MaxRefused = 20

// Refusal is a bundle that was not chosen, with the first rule that refused it.
type Refusal struct {
	Catalog string `json:"catalog"`
	Bundle  string `json:"bundle"`
	// Version is empty if it cannot be parsed.
	Version string `json:"version"`
	Rule    Rule   `json:"rule"`
	// Why describes the rule and the bundle.
	Why string `json:"why"`

	node *graph.Node
	own  *view
}

func (r *resolver) refuse(own *view, node *graph.Node, rule Rule) {
	r.counts[rule]++
	r.refused = append(r.refused, Refusal{Catalog: own.catalog.Name, Bundle: node.Bundle.Name, Rule: rule, node: node, own: own})
}

// nearest returns the refused bundles that passed most rules, best versions first.
func (r *resolver) nearest() []Refusal {
	order := Rules()
	slices.SortFunc(r.refused, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(slices.Index(order, b.Rule), slices.Index(order, a.Rule)),
			graph.Better(a.node, b.node), cmp.Compare(a.Catalog, b.Catalog))
	})
	out := slices.Clone(r.refused[:min(len(r.refused), MaxRefused)])
	for i := range out {
		if out[i].node.Readable {
			out[i].Version = out[i].node.Version.String()
		}
		out[i].Why = r.whyRefused(out[i])
	}
	return out
}

func (r *resolver) whyRefused(refused Refusal) string {
	switch refused.Rule {
	case NotInChannel:
		if len(refused.node.Channels) == 0 {
			return "is in no channel"
		}
		return "is in " + channelList(refused.node.Channels)
	case OutsideRange:
		if !refused.node.Readable {
			_, err := refused.node.Bundle.Version()
			return fmt.Sprintf("has no version that can be read: %v", err)
		}
		return fmt.Sprintf("is not in the range %s", r.request.Version)
	case NotSuccessor:
		if r.isForeign(refused.own) {
			return fmt.Sprintf("is no successor of bundle %s, which catalog %s does not have", r.request.Installed.Name, refused.own.catalog.Name)
		}
		described := refused.own.graph.Describe(refused.Bundle)
		if described == "" {
			return fmt.Sprintf("is no successor of %s: it neither replaces nor skips any version", r.request.Installed.Version)
		}
		return fmt.Sprintf("is no successor of %s: it %s", r.request.Installed.Version, described)
	case ClusterVersion:
		least, _ := MinKubernetes(refused.node.Bundle)
		return fmt.Sprintf("needs Kubernetes %s or later, and the cluster has %s", least, r.request.Cluster)
	case DeprecatedBundle:
		return strings.TrimSuffix("is deprecated: "+strings.Join(strings.Fields(refused.node.Message), " "), ": ")
	case DeprecatedInCatalog:
		return "is deprecated, and another catalog has a bundle that is not"
	case LowerPriority:
		return "is in a catalog of lower priority"
	}
	return "is lower"
}

// isForeign reports whether a catalog lacks the installed bundle and has another bundle of the same
// version, as after a switch of catalogs.
func (r *resolver) isForeign(own *view) bool {
	return r.request.Installed != nil && own.graph.Node(r.request.Installed.Name) == nil && slices.ContainsFunc(own.graph.Nodes(), func(node *graph.Node) bool {
		return node.Readable && node.Version.String() == r.request.Installed.Version
	})
}

const maxChannels = 5

func channelList(channels []string) string {
	noun := "channel "
	if len(channels) > 1 {
		noun = "channels "
	}
	if len(channels) > maxChannels {
		return fmt.Sprintf("%s%s and %d more", noun, strings.Join(channels[:maxChannels], ", "), len(channels)-maxChannels)
	}
	return noun + strings.Join(channels, ", ")
}
