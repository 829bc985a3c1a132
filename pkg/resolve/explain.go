package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/text"
)

// Error reports that the rules leave no bundle, or more than one.
type Error struct {
	// Message is the text of OLM v1's resolver.
	Message string
	// Reason names the nearest bundle, the rule that refused it, and a remedy.
	Reason string
	// Refused and Counts have the same meaning as in Resolution.
	Refused []Refusal
	Counts  map[Rule]int
	// Path lists the versions to install one after the other, ending with the wanted version. It is
	// empty if there is no upgrade path or none is needed.
	Path []string
}

// Error returns OLM v1's message.
func (e *Error) Error() string { return e.Message }

func (r *resolver) unresolved() *Error {
	failed := &Error{Message: r.message(), Counts: r.counts}
	if len(r.found) > 1 {
		failed.Reason = r.whyTie()
		failed.Refused = r.nearest()
		return failed
	}
	failed.Refused = r.nearest()
	failed.Reason, failed.Path = r.whyNone(failed.Refused)
	return failed
}

// message returns exactly the text of OLM v1, because people search for it.
func (r *resolver) message() string {
	var b strings.Builder
	if r.request.Installed != nil {
		fmt.Fprintf(&b, "error upgrading from currently installed version %q: ", r.request.Installed.Version)
	}
	if len(r.found) > 1 {
		fmt.Fprintf(&b, "found bundles for package %q ", r.request.Package)
	} else {
		fmt.Fprintf(&b, "no bundles found for package %q ", r.request.Package)
	}
	if r.request.Version != "" {
		fmt.Fprintf(&b, "matching version %q ", r.request.Version)
	}
	if len(r.request.Channels) > 0 {
		fmt.Fprintf(&b, "in channels %v ", r.request.Channels)
	}
	if len(r.found) > 1 {
		fmt.Fprintf(&b, "in multiple catalogs with the same priority %v ", r.foundNames())
	}
	return strings.TrimSpace(b.String())
}

func (r *resolver) foundNames() []string {
	names := make([]string, 0, len(r.found))
	for _, one := range r.found {
		names = append(names, one.catalog.Name)
	}
	slices.Sort(names)
	return names
}

func (r *resolver) whyTie() string {
	parts := make([]string, 0, len(r.found))
	for _, one := range r.found {
		parts = append(parts, fmt.Sprintf("%s (priority %d) has %s", one.catalog.Name, one.catalog.Priority, one.graph.ShortName(one.best().Bundle.Name)))
	}
	slices.Sort(parts)
	if len(parts) > maxChannels {
		parts = append(parts[:maxChannels], "…")
	}
	return strings.Join(parts, ", ") + ": give one of the catalogs a higher priority, or name one by its labels in selector"
}

func (r *resolver) whyNone(refused []Refusal) (string, []string) {
	if len(r.looked) == 0 {
		return fmt.Sprintf("none of %s has the package", text.Count(r.catalogs, "catalog")), nil
	}
	if len(refused) == 0 {
		return "the package has no bundles", nil
	}
	switch nearest := refused[0]; nearest.Rule {
	case NotSuccessor:
		return r.whyNotSuccessor(nearest)
	case ClusterVersion:
		return fmt.Sprintf("%s %s: upgrade the cluster first, or ask for a lower version", cmp.Or(nearest.Version, nearest.Bundle), nearest.Why), nil
	case OutsideRange:
		return r.whyOutside(), nil
	default:
		return r.whyNotInChannel(), nil
	}
}

// whyNotSuccessor explains a requested version that exists, and that no single upgrade step
// reaches.
func (r *resolver) whyNotSuccessor(nearest Refusal) (string, []string) {
	helps, path := r.suggestion(nearest)
	if helps == "" {
		return nearest.Why, nil
	}
	where := ""
	if channels := r.askedChannels(nearest.node); len(channels) > 0 {
		where = " in " + channelList(channels)
	}
	return fmt.Sprintf("%s exists%s but %s; %s", cmp.Or(nearest.Version, nearest.Bundle), where, nearest.Why, helps), path
}

// suggestion returns how a version that is no successor can be reached, and the versions on the
// path. The text is empty if the installed version does not matter.
func (r *resolver) suggestion(nearest Refusal) (string, []string) {
	installed, err := r.installed()
	if err != nil || installed == nil {
		return "", nil
	}
	if path := nearest.own.graph.Path(*installed, nearest.Bundle); len(path) > 1 {
		return "go to " + nearest.own.graph.PathText(path[:len(path)-1]) + " first", versions(nearest.own.graph, path)
	}
	if nearest.node.Readable && nearest.node.Version.Compare(installed.Version) < 0 {
		return "it is lower, and only upgradeConstraintPolicy SelfCertified allows a downgrade", nil
	}
	if path := graph.New(nearest.own.catalog.Config, nil).Path(*installed, nearest.Bundle); len(r.request.Channels) > 0 && len(path) > 0 {
		there := channelsOf(path)
		if len(there) > 1 {
			return fmt.Sprintf("%s lead there from %s: add them to channels", channelList(there), r.request.Installed.Version), nil
		}
		return fmt.Sprintf("%s leads there from %s: add it to channels", channelList(there), r.request.Installed.Version), nil
	}
	if r.isForeign(nearest.own) {
		return "to switch to this catalog, set upgradeConstraintPolicy to SelfCertified, review what changes, and set it back", nil
	}
	return fmt.Sprintf("no upgrade path leads there from %s", r.request.Installed.Name), nil
}

func (r *resolver) askedChannels(node *graph.Node) []string {
	if len(r.request.Channels) == 0 {
		return node.Channels
	}
	return slices.DeleteFunc(slices.Clone(node.Channels), func(name string) bool { return !slices.Contains(r.request.Channels, name) })
}

func versions(g *graph.Graph, path []graph.Upgrade) []string {
	out := make([]string, len(path))
	for i, step := range path {
		out[i] = g.ShortName(step.Bundle)
	}
	return out
}

func channelsOf(path []graph.Upgrade) []string {
	var out []string
	for _, step := range path {
		if !slices.Contains(out, step.Channel) {
			out = append(out, step.Channel)
		}
	}
	return out
}

// whyOutside names the highest and the lowest available version.
func (r *resolver) whyOutside() string {
	var nodes []*graph.Node
	for _, refused := range r.refused {
		if refused.Rule == OutsideRange && refused.node.Readable {
			nodes = append(nodes, refused.node)
		}
	}
	where := ""
	if len(r.request.Channels) > 0 {
		where = " in " + channelList(r.request.Channels)
	}
	if len(nodes) == 0 {
		return fmt.Sprintf("no bundle%s has a version that can be read", where)
	}
	byVersion := func(a, b *graph.Node) int { return a.Version.Compare(b.Version) }
	slices.SortFunc(nodes, byVersion)
	// Several catalogs may have the same version.
	nodes = slices.CompactFunc(nodes, func(a, b *graph.Node) bool { return byVersion(a, b) == 0 })
	low, high := nodes[0], nodes[len(nodes)-1]
	said := fmt.Sprintf("none of the %d versions%s is in the range: they are from %s to %s", len(nodes), where, low.Version, high.Version)
	if len(nodes) == 1 {
		said = fmt.Sprintf("%s is the only version%s, and not in the range", low.Version, where)
	}
	if r.allowedPreRelease(nodes) {
		said += "; pre-releases are in a range only when the range names one, for instance >=1.0.0-0"
	}
	return said
}

// allowedPreRelease reports whether a range refused a version only because it is a pre-release.
func (r *resolver) allowedPreRelease(nodes []*graph.Node) bool {
	return slices.ContainsFunc(nodes, func(node *graph.Node) bool {
		if len(node.Version.Pre) == 0 {
			return false
		}
		core := fbc.Version{Version: node.Version.Version}
		core.Pre = nil
		return r.allowed.Check(masterminds(core))
	})
}

func (r *resolver) whyNotInChannel() string {
	var there []string
	for _, one := range r.looked {
		for i := range one.catalog.Config.Channels {
			there = append(there, one.catalog.Config.Channels[i].Name)
		}
	}
	slices.Sort(there)
	there = slices.Compact(there)
	asked := slices.Clone(r.request.Channels)
	slices.Sort(asked)
	if len(there) == 0 {
		return "the package has no channels"
	}
	verb := "has"
	if len(asked) > 1 {
		verb = "have"
	}
	return fmt.Sprintf("%s %s no bundle of the package; it has %s", channelList(asked), verb, channelList(there))
}

func (r *resolver) why(own *view, winner *graph.Node) string {
	stays := ""
	if r.request.Installed != nil && r.request.Installed.Name == winner.Bundle.Name {
		stays = "it stays: "
	}
	said := fmt.Sprintf("%s%s is the highest version", stays, winner.Version)
	if winner.Deprecated {
		said += " though deprecated, as all other candidates are"
		if len(own.candidates) == 1 {
			said = fmt.Sprintf("%s%s is deprecated, and the only version", stays, winner.Version)
		}
	}
	if r.request.Version != "" {
		said += " in the range " + r.request.Version
	}
	if len(r.request.Channels) > 0 {
		said += " in " + channelList(r.request.Channels)
	}
	if installed, err := r.installed(); err == nil && installed != nil {
		said += " that is installed or succeeds " + installed.Version.String()
	}
	return said + r.higher(own, winner)
}

// higher names the best version above the winner, and the reason for its refusal.
func (r *resolver) higher(own *view, winner *graph.Node) string {
	var above *Refusal
	for i := range r.refused {
		refused := &r.refused[i]
		matters := refused.own == own && refused.node.Readable && (refused.Rule == DeprecatedBundle || refused.Rule == NotSuccessor || refused.Rule == ClusterVersion)
		if matters && refused.node.Version.Compare(winner.Version) > 0 && (above == nil || graph.Better(refused.node, above.node) < 0) {
			above = refused
		}
	}
	if above == nil {
		return ""
	}
	named := *above
	named.Version = named.node.Version.String()
	named.Why = r.whyRefused(named)
	if named.Rule == NotSuccessor {
		said, _ := r.whyNotSuccessor(named)
		return "; " + said
	}
	return fmt.Sprintf("; %s %s", named.Version, named.Why)
}
