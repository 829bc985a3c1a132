// Package resolve chooses the one bundle that an extension should have, and explains the choice.
// The rules and the messages are those of OLM v1's resolver. It is pure, and the answer does not
// depend on the order of its input. docs/reference/resolution.md has the rules.
package resolve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/clusterversion"
)

// Request is the request of an extension.
type Request struct {
	Package string
	// Version is a range in the grammar of Masterminds/semver; empty is any version, also a
	// pre-release.
	Version string
	// Channels restrict bundles and upgrades; empty allows all.
	Channels []string
	// Selector chooses catalogs by their labels; nil and empty are all.
	Selector *metav1.LabelSelector
	// SelfCertified allows any version, independent of the installed one.
	SelfCertified bool
	// Installed is nil when nothing is.
	Installed *Installed
	// Cluster is the version of the cluster; nil if unknown, and then ignored.
	Cluster *clusterversion.Kubernetes
}

// Installed is the bundle that the extension has.
type Installed struct{ Name, Version string }

// Catalog has the bundles of the package in one catalog.
type Catalog struct {
	Name        string
	Labels      map[string]string
	Priority    int32
	Unavailable bool
	// Config is nil or empty when the catalog does not have the package. It must have been
	// through fbc's ByPackage, and is not changed.
	Config *fbc.Config
	// Err is the error of reading the catalog. It fails every resolution that uses this catalog,
	// because the catalog may have a better bundle.
	Err error
}

// Resolution is the bundle that was chosen.
type Resolution struct {
	Bundle  *fbc.Bundle
	Version fbc.Version
	Catalog string
	// Channel is a channel with the bundle: the channel of the upgrade, or else a requested
	// channel, preferably the default channel. It is empty if no channel has the bundle.
	Channel string
	// Deprecation has the messages of the bundle's catalog.
	Deprecation Deprecation
	// Reason says why this bundle was chosen. Refused lists the nearest refused bundles with
	// reasons.
	Reason  string
	Refused []Refusal
	// Counts has the number of bundles that each rule refused, including those in Refused.
	Counts map[Rule]int
}

// Deprecation has a catalog's messages on the package, on the requested channels (or all) and on
// the bundle.
type Deprecation struct {
	Package  *fbc.Deprecation
	Channels []fbc.Deprecation
	Bundle   *fbc.Deprecation
}

// Resolve chooses the bundle. Errors about the request and the catalogs have upstream's text. If
// the rules leave no bundle, or more than one, the error is an *Error with the reason.
func Resolve(request Request, catalogs []Catalog) (*Resolution, error) {
	r, err := narrowed(request, catalogs)
	if err != nil {
		return nil, err
	}
	return r.answer()
}

// narrowed puts all bundles through the rules.
func narrowed(request Request, catalogs []Catalog) (*resolver, error) {
	r := &resolver{request: request, counts: map[Rule]int{}}
	asked, err := r.asked(catalogs)
	if err != nil {
		return nil, err
	}
	if request.Version != "" {
		if r.allowed, err = semver.NewConstraint(request.Version); err != nil {
			return nil, fmt.Errorf("desired version range %q is invalid: %w", request.Version, err)
		}
	}
	for i := range asked {
		if err := r.look(&asked[i]); err != nil {
			return nil, fmt.Errorf("error walking catalogs: %w", err)
		}
	}
	r.dropDeprecated()
	r.dropLowerPriority()
	return r, nil
}

func (r *resolver) answer() (*Resolution, error) {
	if len(r.found) != 1 {
		return nil, r.unresolved()
	}
	return r.chosen(r.found[0])
}

// resolver is one resolution.
type resolver struct {
	request Request
	allowed *semver.Constraints
	// looked are the catalogs that have the package, and found those of them that have a
	// candidate.
	looked, found []*view
	selector      labels.Selector
	catalogs      int
	refused       []Refusal
	counts        map[Rule]int
}

// view is the package in one catalog.
type view struct {
	catalog *Catalog
	graph   *graph.Graph
	// candidates are the bundles that no rule refused, the best first.
	candidates []*graph.Node
}

func (v *view) best() *graph.Node { return v.candidates[0] }

// asked are the catalogs that count, by name.
func (r *resolver) asked(catalogs []Catalog) ([]Catalog, error) {
	r.selector = labels.Everything()
	if r.request.Selector != nil && (len(r.request.Selector.MatchLabels) > 0 || len(r.request.Selector.MatchExpressions) > 0) {
		var err error
		if r.selector, err = metav1.LabelSelectorAsSelector(r.request.Selector); err != nil {
			return nil, fmt.Errorf("desired catalog selector is invalid: %w", err)
		}
	}
	var asked []Catalog
	for i := range catalogs {
		if !catalogs[i].Unavailable && r.chooses(&catalogs[i]) {
			asked = append(asked, catalogs[i])
		}
	}
	slices.SortFunc(asked, func(a, b Catalog) int { return cmp.Compare(a.Name, b.Name) })
	r.catalogs = len(asked)
	return asked, nil
}

// chooses reports whether the selector chooses a catalog.
func (r *resolver) chooses(catalog *Catalog) bool {
	return r.selector.Matches(labels.Set(catalog.Labels))
}

// look puts the bundles of one catalog through the rules.
func (r *resolver) look(catalog *Catalog) error {
	if catalog.Err != nil {
		return fmt.Errorf("error getting package %q from catalog %q: %w", r.request.Package, catalog.Name, catalog.Err)
	}
	if catalog.Config == nil || catalog.Config.Empty() {
		return nil
	}
	own := &view{catalog: catalog, graph: graph.New(catalog.Config, r.request.Channels)}
	r.looked = append(r.looked, own)
	installed, err := r.installed()
	if err != nil {
		return fmt.Errorf("error finding upgrade edges: %w", err)
	}
	for _, node := range own.graph.Nodes() {
		if rule := r.refuses(own, node, installed); rule != "" {
			r.refuse(own, node, rule)
			continue
		}
		own.candidates = append(own.candidates, node)
	}
	if len(own.candidates) > 0 {
		r.found = append(r.found, own)
	}
	return nil
}

// installed is nil when what is installed does not matter; its version is not even read then.
func (r *resolver) installed() (*graph.Installed, error) {
	if r.request.Installed == nil || r.request.SelfCertified {
		return nil, nil
	}
	version, err := fbc.ParseVersion(r.request.Installed.Version)
	if err != nil {
		return nil, fmt.Errorf("failed to get version and release of installed bundle: %w", err)
	}
	return &graph.Installed{Name: r.request.Installed.Name, Version: version}, nil
}

// refuses returns the first rule that a bundle does not pass.
func (r *resolver) refuses(own *view, node *graph.Node, installed *graph.Installed) Rule {
	if len(r.request.Channels) > 0 && !slices.ContainsFunc(node.Channels, func(name string) bool { return slices.Contains(r.request.Channels, name) }) {
		return NotInChannel
	}
	if r.allowed != nil && !(node.Readable && r.allowed.Check(masterminds(node.Version))) {
		return OutsideRange
	}
	if installed != nil && !(node.Readable && node.Version.Compare(installed.Version) == 0) {
		if _, ok := own.graph.Succeeds(node.Bundle.Name, *installed); !ok {
			return NotSuccessor
		}
	}
	if r.tooNew(node) {
		return ClusterVersion
	}
	return ""
}

// tooNew reports whether a bundle needs a newer Kubernetes than the cluster has. The one that is
// installed stays, or a lower one would take its place.
func (r *resolver) tooNew(node *graph.Node) bool {
	if r.request.Cluster == nil || r.request.Installed != nil && r.request.Installed.Name == node.Bundle.Name {
		return false
	}
	least, found := MinKubernetes(node.Bundle)
	return found && r.request.Cluster.Less(least)
}

// NeedsKubernetes reports whether a bundle needs a version of Kubernetes.
func NeedsKubernetes(bundle *fbc.Bundle) bool {
	_, needs := MinKubernetes(bundle)
	return needs
}

// MinKubernetes returns the Kubernetes that a bundle needs. It ignores an unreadable version, since
// rendering warns of it.
func MinKubernetes(bundle *fbc.Bundle) (clusterversion.Kubernetes, bool) {
	for _, property := range bundle.Properties {
		var csv struct {
			MinKubeVersion string `json:"minKubeVersion"`
		}
		if property.Type != fbc.PropertyCSVMetadata || json.Unmarshal(property.Value, &csv) != nil || csv.MinKubeVersion == "" {
			continue
		}
		least, err := clusterversion.ParseKubernetes(csv.MinKubeVersion)
		return least, err == nil
	}
	return clusterversion.Kubernetes{}, false
}

// InRange reports whether a version is in a range, in the grammar of Request.Version. An empty
// range contains every version. An unreadable version is only in a range equal to it.
func InRange(version, wanted string) bool {
	if wanted == "" || wanted == version {
		return true
	}
	allowed, err := semver.NewConstraint(wanted)
	if err != nil {
		return false
	}
	parsed, err := fbc.ParseVersion(version)
	return err == nil && allowed.Check(masterminds(parsed))
}

// masterminds is the version in the other library, whose ranges users write.
func masterminds(version fbc.Version) *semver.Version {
	plain := version.Version
	pre := ""
	for i, part := range plain.Pre {
		if i > 0 {
			pre += "."
		}
		pre += part.String()
	}
	return semver.New(plain.Major, plain.Minor, plain.Patch, pre, "")
}

// dropDeprecated leaves out the catalogs whose best bundle is deprecated when another one has
// a sound one, whatever their priorities.
func (r *resolver) dropDeprecated() {
	sound := func(one *view) bool { return !one.best().Deprecated }
	if slices.ContainsFunc(r.found, sound) {
		r.keep(sound, DeprecatedInCatalog)
	}
}

// dropLowerPriority leaves the catalog of the highest priority, when there is one. When two
// have it, all stay: the message names them all.
func (r *resolver) dropLowerPriority() {
	if len(r.found) < 2 {
		return
	}
	ordered := slices.Clone(r.found)
	slices.SortStableFunc(ordered, func(a, b *view) int { return cmp.Compare(b.catalog.Priority, a.catalog.Priority) })
	if ordered[0].catalog.Priority != ordered[1].catalog.Priority {
		r.keep(func(one *view) bool { return one == ordered[0] }, LowerPriority)
	}
}

func (r *resolver) keep(stays func(*view) bool, rule Rule) {
	var kept []*view
	for _, one := range r.found {
		if stays(one) {
			kept = append(kept, one)
			continue
		}
		for _, node := range one.candidates {
			r.refuse(one, node, rule)
		}
	}
	r.found = kept
}
