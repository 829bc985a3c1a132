package resolve

import (
	"cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// Survey is a resolution together with all bundles that it looked at.
type Survey struct {
	// Resolution is nil when Err is not: then the rules leave no bundle or more than one, which
	// is an error of type *Error, or what they leave cannot be installed.
	Resolution *Resolution
	Err        error
	// Seen are the bundles of all catalogs that were asked, in no order.
	Seen []Seen
	// Elsewhere are the bundles of catalogs that the selector does not choose, in no order.
	Elsewhere []Seen

	resolver *resolver
}

// Seen is a bundle of one catalog.
type Seen struct {
	Catalog string
	Node    *graph.Node
	// Rule is the rule that refused it, "" when none did: it was chosen, or one of several that
	// might have been. It is "" for a bundle of Elsewhere.
	Rule Rule

	own *view
}

// Look resolves, and returns all that it saw. Its errors are those about the request and the
// catalogs: then nothing is known.
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
			open = open[:1] // the best refused the others
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

// elsewhere are the bundles of catalogs that were not asked and might have been.
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

// Why says in words what refused a bundle, and what helps. It looks for upgrade paths, so it
// is for a few bundles.
func (s *Survey) Why(seen Seen) string {
	if seen.own == nil || seen.Rule == "" {
		return ""
	}
	refused := Refusal{Catalog: seen.Catalog, Bundle: seen.Node.Bundle.Name, Rule: seen.Rule, node: seen.Node, own: seen.own}
	refused.Why = s.resolver.whyRefused(refused)
	if seen.Rule != NotSuccessor {
		return refused.Why
	}
	if helps, _ := s.resolver.whatHelps(refused); helps != "" {
		return refused.Why + "; " + helps
	}
	return refused.Why
}

// Tie says why several catalogs are left, and what helps, "" when that is not so.
func (s *Survey) Tie() string {
	if len(s.resolver.found) < 2 {
		return ""
	}
	return s.resolver.whyTie()
}

// Newest is the highest version of those that were seen in the channels that are asked for,
// whatever refused it besides. It is false when there is none that can be read.
func (s *Survey) Newest() (fbc.Version, bool) {
	var newest *graph.Node
	for _, one := range s.Seen {
		if one.Node.Readable && one.Rule != NotInChannel && (newest == nil || one.Node.Version.Compare(newest.Version) > 0) {
			newest = one.Node
		}
	}
	return cmp.Or(newest, &graph.Node{}).Version, newest != nil
}
