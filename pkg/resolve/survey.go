package resolve

import (
	"cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// Survey is a resolution with all bundles that it examined.
type Survey struct {
	// Resolution is nil if Err is set. Err is an *Error if the rules leave no bundle or more than
	// one. Any other Err means that the chosen bundle cannot be installed.
	Resolution *Resolution
	Err        error
	// Seen are the bundles of all selected catalogs, unsorted.
	Seen []Seen
	// Elsewhere are the bundles of catalogs that the selector does not match, unsorted.
	Elsewhere []Seen

	resolver *resolver
}

// Seen is a bundle of one catalog.
type Seen struct {
	Catalog string
	Node    *graph.Node
	// Rule is the rule that refused the bundle. It is empty for the chosen bundle, for several
	// equal candidates, and for bundles of Elsewhere.
	Rule Rule

	own *view
}

// Look resolves, and returns all examined bundles. Its own errors are about the request and the
// catalogs; then there is no Survey.
func Look(request Request, catalogs []Catalog) (*Survey, error) {
	r, err := narrowed(request, catalogs)
	if err != nil {
		return nil, err
	}
	survey := &Survey{resolver: r}
	survey.Resolution, survey.Err = r.answer()
	for _, one := range r.found {
		open := one.candidates
		if len(r.found) == 1 {
			open = open[:1] // Lower or DeprecatedBundle refused the other candidates
		}
		for _, node := range open {
			survey.Seen = append(survey.Seen, Seen{Catalog: one.catalog.Name, Node: node, own: one})
		}
	}
	for _, refused := range r.refused {
		survey.Seen = append(survey.Seen, Seen{Catalog: refused.Catalog, Node: refused.node, Rule: refused.Rule, own: refused.own})
	}
	survey.Elsewhere = r.elsewhere(catalogs)
	return survey, nil
}

// elsewhere returns the bundles of available catalogs that the selector does not match.
func (r *resolver) elsewhere(catalogs []Catalog) []Seen {
	var out []Seen
	for i := range catalogs {
		one := &catalogs[i]
		if one.Unavailable || one.Config == nil || r.chooses(one) {
			continue
		}
		for _, node := range graph.New(one.Config, nil).Nodes() {
			out = append(out, Seen{Catalog: one.Name, Node: node})
		}
	}
	return out
}

// Why describes the refusal of a bundle, and a remedy. It searches upgrade paths, so call it for
// few bundles.
func (s *Survey) Why(seen Seen) string {
	if seen.own == nil || seen.Rule == "" {
		return ""
	}
	refused := Refusal{Catalog: seen.Catalog, Bundle: seen.Node.Bundle.Name, Rule: seen.Rule, node: seen.Node, own: seen.own}
	refused.Why = s.resolver.whyRefused(refused)
	if seen.Rule != NotSuccessor {
		return refused.Why
	}
	if helps, _ := s.resolver.suggestion(refused); helps != "" {
		return refused.Why + "; " + helps
	}
	return refused.Why
}

// Tie explains why several catalogs remain, and names the remedy; empty if there is no tie.
func (s *Survey) Tie() string {
	if len(s.resolver.found) < 2 {
		return ""
	}
	return s.resolver.whyTie()
}

// Newest returns the highest version in the requested channels, even if another rule refused it. It
// returns false if no version can be parsed.
func (s *Survey) Newest() (fbc.Version, bool) {
	var newest *graph.Node
	for _, one := range s.Seen {
		if one.Node.Readable && one.Rule != NotInChannel && (newest == nil || one.Node.Version.Compare(newest.Version) > 0) {
			newest = one.Node
		}
	}
	return cmp.Or(newest, &graph.Node{}).Version, newest != nil
}
