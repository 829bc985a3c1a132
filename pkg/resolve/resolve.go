// Package resolve chooses the bundle that an extension should have, and explains the choice. It has
// the rules and the messages of OLM v1's resolver. It is pure, and the answer does not depend on
// the order of its input. docs/reference/resolution.md lists the rules.
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

// Request holds the constraints of an extension.
type Request struct {
	Package string
	// Version is a range in the grammar of Masterminds/semver; empty for any version, including
	// pre-releases.
	Version string
	// Channels restrict bundles and upgrades; empty allows all.
	Channels []string
	// Selector chooses catalogs by their labels; nil and empty choose all.
	Selector *metav1.LabelSelector
	// SelfCertified allows any version, regardless of the installed one.
	SelfCertified bool
	// Installed is the installed bundle; nil if there is none.
	Installed *Installed
	// Cluster is the version of the cluster. If it is unknown (nil), it does not restrict the
	// choice.
	Cluster *clusterversion.Kubernetes
}

// Installed is the bundle that the extension has.
type Installed struct{ Name, Version string }

// Catalog holds the package's bundles in one catalog.
type Catalog struct {
	Name        string
	Labels      map[string]string
	Priority    int32
	Unavailable bool
	// Config is nil or empty if the catalog does not have the package. It must come from fbc's
	// ByPackage, and is not changed.
	Config *fbc.Config
	// Err is the error of reading the catalog. It fails every resolution that uses this catalog,
	// because the catalog may have a better bundle.
	Err error
}

// Resolution is the chosen bundle.
type Resolution struct {
	Bundle  *fbc.Bundle
	Version fbc.Version
	Catalog string
	// Channel is a channel with the bundle: the channel of the upgrade, or else a requested
	// channel, preferably the default channel. It is empty if no channel has the bundle.
	Channel string
	// Deprecation has the messages of the bundle's catalog.
	Deprecation Deprecation
	// Reason is the reason for the choice. Refused lists the nearest refused bundles with reasons.
	Reason  string
	Refused []Refusal
	// Counts is the number of bundles that each rule refused, including those in Refused.
	Counts map[Rule]int
}

// Deprecation has a catalog's deprecation messages for the package, for the requested channels (or
// all) and for the bundle.
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

type resolver struct {
	request Request
	allowed *semver.Constraints
	// looked are the catalogs that have the package. found are those with a candidate.
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
	// candidates are the bundles that no rule refused, best first.
	candidates []*graph.Node
}

func (v *view) best() *graph.Node { return v.candidates[0] }

// asked returns the selected and available catalogs, sorted by name.
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

func (r *resolver) chooses(catalog *Catalog) bool {
	return r.selector.Matches(labels.Set(catalog.Labels))
}

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

// installed returns the installed bundle. It returns nil, without parsing the version, if the
// installed bundle does not matter.
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

// refuses returns the first rule that refuses a bundle; empty if none does.
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

// tooNew reports whether a bundle needs a newer Kubernetes than the cluster has. It accepts the
// installed bundle, because otherwise a lower version would replace it.
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

// MinKubernetes returns the lowest Kubernetes version that a bundle supports. It ignores an invalid
// version, since rendering warns of it.
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
// range contains every version. A version that cannot be parsed is only in a range equal to it.
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

// masterminds converts a version to the type of Masterminds/semver, whose ranges users write.
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

// dropDeprecated drops the catalogs whose best bundle is deprecated, if another catalog's best
// bundle is not. Priorities do not matter.
func (r *resolver) dropDeprecated() {
	sound := func(one *view) bool { return !one.best().Deprecated }
	if slices.ContainsFunc(r.found, sound) {
		r.keep(sound, DeprecatedInCatalog)
	}
}

// dropLowerPriority keeps only the catalog of the highest priority. If several catalogs share the
// highest priority, it keeps all, because the message names all.
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
