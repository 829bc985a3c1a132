package catalogpackage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxUpgrades bounds the upgrades in a graph.
	maxUpgrades = 30000
	// maxCost bounds the cost of a graph, see graph.Cost. Such a graph takes some seconds. The
	// largest package of OperatorHub costs a hundredth of it.
	maxCost = 50_000_000
	// maxBeginnings bounds the installed versions whose paths are searched.
	maxBeginnings = 3
)

// GraphREST serves the subresource graph: the upgrades in the channels of a package.
type GraphREST struct {
	endpoint
	graphTable
}

// New returns an empty graph.
func (*GraphREST) New() runtime.Object { return &v1alpha1.CatalogPackageGraph{} }

// beginning is an installed version at the start of paths.
type beginning struct {
	graph.Installed
	version string
	// mark is the text shown at the version itself.
	mark  string
	paths *graph.Paths
}

// Get returns the graph of a package:
//
//  1. Read the package. A package that is too large is an error.
//  2. List its entries and upgrades.
//  3. Find the paths from the installed or the requested version.
func (r *GraphREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := optionsOf(options, "catalog", "channel", "from", "to")
	if err != nil {
		return nil, err
	}
	from, config, err := r.read(name, query)
	if err != nil {
		return nil, err
	}
	drawn := graph.New(config, query.Channel)
	if cost := drawn.Cost(); cost > maxCost {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the graph of package %s of catalog %s is too large: it would take %d comparisons, and at most %d are allowed; channel=NAME asks for a part of it",
			name, from.Catalog.Name, cost, maxCost))
	}
	out := &v1alpha1.CatalogPackageGraph{
		ObjectMeta: named(from), Catalog: from.Catalog.Name, DefaultChannel: from.Package.DefaultChannel,
		Entries: []v1alpha1.GraphEntry{}, Installed: r.installedNow(ctx)[name],
	}
	listUpgrades(drawn, out)
	beginnings, err := beginningsOf(drawn, query, out.Installed)
	if err != nil {
		return nil, err
	}
	entries(drawn, beginnings, out)
	return out, paths(drawn, query, beginnings, out)
}

func listUpgrades(drawn *graph.Graph, out *v1alpha1.CatalogPackageGraph) {
	all, more := drawn.Upgrades(maxUpgrades)
	out.Omitted = int32(more)
	out.Upgrades = make([]v1alpha1.GraphUpgrade, 0, len(all))
	for _, one := range all {
		out.Upgrades = append(out.Upgrades, v1alpha1.GraphUpgrade{
			From: word(drawn.ShortName(one.From)), To: word(drawn.ShortName(one.To)), Channel: word(one.Channel), By: string(one.By),
		})
	}
}

// beginningsOf returns the requested version, or the installed versions. The catalog may no longer
// contain an installed bundle; ranges still match its version.
func beginningsOf(drawn *graph.Graph, query *v1alpha1.CatalogPackageOptions, installed []v1alpha1.InstalledVersion) ([]beginning, error) {
	if query.From != "" {
		node, err := nodeOf(drawn, "from", query.From)
		if err != nil {
			return nil, err
		}
		return []beginning{begin(drawn, graph.Installed{Name: node.Bundle.Name, Version: node.Version}, "(from)")}, nil
	}
	var out []beginning
	for _, one := range installed {
		version, err := fbc.ParseVersion(one.Version)
		known := slices.ContainsFunc(out, func(other beginning) bool { return other.version == version.String() })
		if err != nil || known || len(out) == maxBeginnings {
			continue
		}
		at := graph.Installed{Version: version}
		if node, err := nodeOf(drawn, "installed", version.String()); err == nil {
			at.Name = node.Bundle.Name
		}
		out = append(out, begin(drawn, at, "(installed)"))
	}
	return out, nil
}

func begin(drawn *graph.Graph, at graph.Installed, mark string) beginning {
	return beginning{Installed: at, version: at.Version.String(), mark: mark, paths: drawn.Paths(at)}
}

// nodeOf returns the bundle with a name or version.
func nodeOf(drawn *graph.Graph, parameter, wanted string) (*graph.Node, error) {
	if node := drawn.Node(wanted); node != nil {
		return node, nil
	}
	for _, node := range drawn.Nodes() {
		if node.Readable && node.Version.String() == wanted {
			return node, nil
		}
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("%s=%q: the package has no such version or bundle", parameter, wanted))
}

func entries(drawn *graph.Graph, beginnings []beginning, out *v1alpha1.CatalogPackageGraph) {
	for _, one := range drawn.Entries() {
		if len(out.Entries) == maxUpgrades {
			return
		}
		var ways []string
		for _, at := range beginnings {
			if way := at.words(drawn, one.Bundle); way != "" {
				if len(beginnings) > 1 {
					way = at.version + ": " + way
				}
				ways = append(ways, way)
			}
		}
		out.Entries = append(out.Entries, v1alpha1.GraphEntry{
			Channel: word(one.Channel), Version: word(drawn.ShortName(one.Bundle)), UpgradeOf: text.Line(one.UpgradeOf, longestMessage),
			Path: text.Line(strings.Join(ways, "; "), longestMessage), Deprecation: deprecationOf(drawn.Node(one.Bundle)),
		})
	}
}

// words describes the path to a bundle, or returns "" if there is none.
func (b *beginning) words(drawn *graph.Graph, bundle string) string {
	if bundle == b.Name {
		return b.mark
	}
	return drawn.PathText(b.paths.To(bundle))
}

// paths adds the paths to the best version of each channel, and to the requested version.
func paths(drawn *graph.Graph, query *v1alpha1.CatalogPackageOptions, beginnings []beginning, out *v1alpha1.CatalogPackageGraph) error {
	var targets []string
	if query.To != "" {
		node, err := nodeOf(drawn, "to", query.To)
		if err != nil {
			return err
		}
		targets = append(targets, node.Bundle.Name)
	}
	seen := map[string]bool{}
	for _, node := range drawn.Nodes() {
		for _, channel := range node.Channels {
			if counts := len(query.Channel) == 0 || slices.Contains(query.Channel, channel); counts && !seen[channel] {
				seen[channel] = true
				if !slices.Contains(targets, node.Bundle.Name) {
					targets = append(targets, node.Bundle.Name)
				}
			}
		}
	}
	for _, at := range beginnings {
		for _, target := range targets[:min(len(targets), longestList)] {
			way := v1alpha1.GraphPath{From: at.version, To: word(drawn.ShortName(target))}
			for _, step := range at.paths.To(target) {
				way.Versions = append(way.Versions, word(drawn.ShortName(step.Bundle)))
			}
			if len(way.Versions) > 0 {
				out.Paths = append(out.Paths, way)
			}
		}
	}
	return nil
}

type graphTable struct{}

// ConvertToTable prints one row for each entry of a channel.
func (graphTable) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	found, ok := object.(*v1alpha1.CatalogPackageGraph)
	if !ok {
		return nil, fmt.Errorf("printing a table of a graph: got a %T", object)
	}
	out := &metav1.Table{}
	for _, one := range found.Entries {
		channel := one.Channel
		if channel == found.DefaultChannel {
			channel += " (default)"
		}
		out.Rows = append(out.Rows, printing.Row([]any{
			channel, one.Version, text.Clip(one.UpgradeOf, messageCell), text.Clip(one.Path, messageCell), deprecated(one.Deprecation),
		}, &v1alpha1.CatalogPackageGraph{ObjectMeta: metav1.ObjectMeta{Name: found.Name}}))
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Channel", Type: "string", Description: "Channel that has the version."},
		{Name: "Version", Type: "string", Description: "The version, or a bundle that is not in the catalog."},
		{Name: "Upgrade of", Type: "string", Description: "Versions that can be upgraded to this one."},
		{Name: "Path", Type: "string", Description: "Upgrade path from the installed version: the versions in order."},
		{Name: "Deprecated", Type: "string", Description: "Why the version should not be used, as the catalog says."},
	}), nil
}
