package privilege

import (
	"context"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Bounds of the work for a request. The first denial decides the answer, and a few more checks only
// complete the list of missing rights. So checks run in batches that begin small.
const (
	// maxMissing is the number of missing rights that an answer names.
	maxMissing = 10
	// firstEffects is the number of objects in the first batch of checks. The batch grows up to
	// maxEffects while every check is allowed.
	firstEffects, maxEffects = 4, 256
	// firstGrants is the number of roles and bindings in the first batch of checks.
	firstGrants = 2
	// questionBatch is the number of checks that are sent before their answers are evaluated.
	questionBatch = 32
	// lastQuestions is the number of checks after the first denial, requests to discovery included.
	// With the checks of the bypass and of the first objects, a denied request costs less than 30.
	lastQuestions = 15
)

// search finds the rights that a requester lacks.
type search struct {
	inquiry *inquiry
	cluster Kinds
	roles   Roles
	demand  *demand

	// lacking are the denied rights, in the order of the demand.
	lacking []ask
	// left is the number of checks that may still be sent after the first denial.
	left int
	// partial is true if some rights were not checked.
	partial bool
}

// run checks first the rights needed for any objects, then the rights for the objects in rollout
// order, then the rights that the objects grant. It ends as soon as the answer is known.
func (s *search) run(ctx context.Context) error {
	if err := s.ask(ctx, s.demand.asks); err != nil {
		return err
	}
	if err := s.effects(ctx); err != nil {
		return err
	}
	return s.grants(ctx)
}

// refused reports whether a right is missing. Further checks then only extend the list.
func (s *search) refused() bool { return len(s.lacking) > 0 }

// ask checks rights and records the denied ones.
func (s *search) ask(ctx context.Context, asks []ask) error {
	for len(asks) > 0 {
		if s.refused() && (s.left <= 0 || len(inWords(s.lacking)) > maxMissing) {
			s.partial = true
			return nil
		}
		n := min(questionBatch, len(asks))
		if s.refused() {
			n = min(n, s.left)
		}
		batch := asks[:n]
		asks = asks[n:]
		if err := s.inquiry.all(ctx, rightsOf(batch)); err != nil {
			return err
		}
		if s.refused() {
			s.left -= n
		}
		for _, a := range batch {
			if a.refusal != "" || !s.inquiry.may(a.Right) {
				s.note(a)
			}
		}
	}
	return nil
}

func (s *search) note(a ask) {
	if !s.refused() {
		s.left = lastQuestions
	}
	s.lacking = append(s.lacking, a)
}

// effects checks the rights for the effects on objects. It discovers their kinds in the same
// batches.
func (s *search) effects(ctx context.Context) error {
	rest := s.demand.effects
	for n := firstEffects; len(rest) > 0; n = min(4*n, maxEffects) {
		part := rest[:min(n, len(rest))]
		if s.refused() {
			part = s.affordable(rest)
		}
		if len(part) == 0 {
			s.partial = true
			return nil
		}
		rest = rest[len(part):]
		refs, err := refsToDiscover(part)
		if err != nil {
			return err
		}
		if s.refused() {
			s.left -= len(s.demand.kinds.unasked(refs))
		}
		if err := s.demand.kinds.discover(ctx, s.cluster, refs); err != nil {
			return err
		}
		if err := checkScopes(s.demand.change, s.demand.kinds); err != nil {
			return err
		}
		asks, err := s.demand.rightsFor(part)
		if err != nil {
			return err
		}
		if err := s.ask(ctx, asks); err != nil {
			return err
		}
	}
	return nil
}

// affordable returns the effects that are still checked after a denial: about as many as fill the
// list of missing rights.
func (s *search) affordable(effects []effect) []effect {
	left, unasked := s.left, map[string]bool{}
	missing := maxMissing + 1 - len(inWords(s.lacking))
	for n, e := range effects {
		left -= 2
		if version := e.GroupVersionKind().GroupVersion(); len(s.demand.kinds.unasked([]manifest.Ref{e.Ref})) > 0 && !unasked[version.String()] {
			unasked[version.String()] = true
			left--
		}
		if left < 0 || n >= missing {
			return effects[:n]
		}
	}
	return effects
}

// refsToDiscover returns the objects of effects, and the parameter kinds of the policies among them.
func refsToDiscover(effects []effect) ([]manifest.Ref, error) {
	var refs []manifest.Ref
	for _, e := range effects {
		refs = append(refs, e.Ref)
		if e.write == nil || e.Group != admissionGroup {
			continue
		}
		parameters, err := parametersOf(e.write.Object)
		if err != nil {
			return nil, err
		}
		if parameters.kind != nil {
			refs = append(refs, *parameters.kind)
		}
	}
	return refs, nil
}

// grants checks the rights that roles and bindings grant, unless their author may grant any right.
func (s *search) grants(ctx context.Context) error {
	list := s.demand.grants.list
	set := &atomSet{seen: map[authz.Right]bool{}}
	for many := firstGrants; len(list) > 0; many = min(4*many, questionBatch) {
		n := min(many, len(list))
		if s.refused() {
			// Each further grant needs a check of escalate or bind, and a read of the role in the
			// cluster.
			const each = 2
			if s.left < each || len(inWords(s.lacking)) > maxMissing {
				s.partial = true
				return nil
			}
			n, s.left = 1, s.left-each
		}
		part := list[:n]
		list = list[n:]
		if err := s.grantsOf(ctx, set, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) grantsOf(ctx context.Context, set *atomSet, grants []*grant) error {
	var unless []authz.Right
	for _, grant := range grants {
		unless = append(unless, grant.unless)
	}
	if err := s.inquiry.all(ctx, unless); err != nil {
		return err
	}
	var asks []ask
	for _, grant := range grants {
		if s.inquiry.may(grant.unless) {
			continue
		}
		atoms, err := s.demand.grants.atoms(ctx, set, grant, s.roles)
		if err != nil {
			return err
		}
		asks = append(asks, atoms...)
	}
	return s.ask(ctx, asks)
}

// told returns the missing rights as text. untold is the number of missing rights that the
// requester must not see, because they are about objects that the requester cannot read.
func (s *search) told(ctx context.Context) (words []string, untold int, err error) {
	var readings []authz.Right
	for _, a := range s.lacking {
		if a.shownTo != (authz.Right{}) {
			readings = append(readings, a.shownTo)
		}
	}
	if err := s.inquiry.all(ctx, readings); err != nil {
		return nil, 0, err
	}
	var shown []ask
	for _, a := range s.lacking {
		if a.shownTo == (authz.Right{}) || s.inquiry.may(a.shownTo) {
			shown = append(shown, a)
		}
	}
	return inWords(shown), len(s.lacking) - len(shown), nil
}
