package probe

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// set has a probe for each kind that built-in or custom probes name, and one for all other kinds.
type set struct {
	kinds map[schema.GroupKind]Probe
	// others is the probe of the kinds that are not in kinds, or nil.
	others Probe
}

// For implements Set.
func (s *set) For(kind schema.GroupKind) Probe {
	if p, known := s.kinds[kind]; known {
		return p
	}
	return s.others
}

// Builtin returns the probes of kinds whose status shows readiness. docs/reference/probes.md lists
// them.
func Builtin() Set {
	return assemble(nil, nil)
}

// New returns the built-in probes with custom probes added. An object must pass all probes that
// select it. Custom probes without a kind apply to every kind. Errors name the spec and the
// assertion by their index.
func New(custom []Spec) (Set, error) {
	byKind := map[schema.GroupKind][]judge{}
	var anyKind []judge
	var errs []error
	compiler := compiler{}
	for i, spec := range custom {
		s, err := spec.compile(&compiler)
		if err != nil {
			errs = append(errs, fmt.Errorf("probe %d: %w", i, err))
			continue
		}
		if kind := spec.Selector.GroupKind; kind != nil {
			byKind[*kind] = append(byKind[*kind], s)
			continue
		}
		anyKind = append(anyKind, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return assemble(byKind, anyKind), nil
}

// assemble joins the judges of each kind in a fixed order: built-in, custom for the kind, custom
// for all kinds.
func assemble(byKind map[schema.GroupKind][]judge, anyKind []judge) *set {
	judges := map[schema.GroupKind][]judge{}
	for kind, j := range builtin() {
		judges[kind] = []judge{rule{verdict: alive}, j}
	}
	for kind, custom := range byKind {
		judges[kind] = append(judges[kind], custom...)
	}
	if anyKind != nil {
		// Secrets need their own probe (see secret.go).
		judges[secretKind()] = byKind[secretKind()]
	}
	s := &set{kinds: map[schema.GroupKind]Probe{}}
	for kind, own := range judges {
		probe := prober{secret: isSecret(kind), judges: append(own, anyKind...)}
		if byKind[kind] == nil && anyKind == nil {
			s.kinds[kind] = &probe
			continue
		}
		s.kinds[kind] = &metered{probe}
	}
	if anyKind != nil {
		s.others = &metered{prober{judges: anyKind}}
	}
	return s
}

// selected holds the judges for objects with certain labels.
type selected struct {
	// labels is nil for all objects.
	labels labels.Selector
	judges []judge
	// units is the cost of judging an object, besides expressions.
	units uint64
}

// judge passes objects that are not selected.
func (s selected) judge(v *view) Verdict {
	if !v.budget.Spend(s.units) {
		return unknown("the probes of this object cost more than %d units, make them simpler", MaxCELCost)
	}
	if s.labels != nil && !s.labels.Matches(v.labels()) {
		return pass()
	}
	verdicts := make([]Verdict, 0, len(s.judges))
	for _, j := range s.judges {
		verdicts = append(verdicts, v.ask(j))
	}
	return and(verdicts)
}

func (s selected) reads() Reads {
	var united Reads
	for _, j := range s.judges {
		united = united.Union(j.reads())
	}
	return united
}
