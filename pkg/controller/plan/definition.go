package plan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// Identities executes plans of profiles that users define. Each such profile has its own identity.
type Identities interface {
	// Engine returns the engine of a profile. It is the same engine while the profile is known.
	Engine(name v1alpha1.ProfileName) (*rollout.Engine, error)
	// Facts returns the facts for some definitions of a profile, by their digest. It stops the
	// watches of kinds that these definitions do not read.
	Facts(name v1alpha1.ProfileName, definitions ...*cel.Profile) (map[string]Facts, error)
}

type own struct {
	// current is the present definition. pinned is the definition from which the plan was computed.
	// Each is nil if there is none. problem explains why current cannot be used.
	current, pinned *cel.Profile
	problem         string
	// granted is true if the identity has the rights that the current definition declares.
	granted bool
	facts   map[string]Facts
}

// find finds the definition of a plan, and the identity that executes it.
func (s *scope) find(ctx context.Context) error {
	s.Engine = s.reconciler.Engine
	name := s.plan.Spec.Profile
	if !v1alpha1.IsOwn(name) {
		return nil
	}
	s.own = &own{}
	var err error
	if s.own.current, err = s.currentDefinition(ctx, name); err != nil {
		return err
	}
	if s.own.pinned, err = s.pinnedDefinition(ctx); err != nil {
		return err
	}
	var known []*cel.Profile
	for _, one := range []*cel.Profile{s.own.current, s.own.pinned} {
		if one == s.own.current && !s.own.granted {
			continue // its rights are not granted yet
		}
		if one != nil && (len(known) == 0 || known[0].Digest() != one.Digest()) {
			known = append(known, one)
		}
	}
	if len(known) == 0 {
		return nil
	}
	if s.Engine, err = s.Identities.Engine(name); err != nil {
		return err
	}
	s.own.facts, err = s.Identities.Facts(name, known...)
	return err
}

// currentDefinition returns the stored definition, or nil if it cannot be used.
func (s *scope) currentDefinition(ctx context.Context, name v1alpha1.ProfileName) (*cel.Profile, error) {
	definition := &v1alpha1.ConfigurationProfileDefinition{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: string(name)}, definition)
	switch {
	case apierrors.IsNotFound(err):
		s.own.problem = fmt.Sprintf("there is no ConfigurationProfileDefinition %s: create it, or make a plan of another profile", name)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigurationProfileDefinition %s: %w", name, err)
	case objectmeta.IsUnreadable(definition):
		s.own.problem = fmt.Sprintf("the record of ConfigurationProfileDefinition %s cannot be read", name)
		return nil, nil
	}
	found, err := s.compiled(string(name), &definition.Spec)
	if err != nil {
		s.own.problem = err.Error()
		return nil, nil //nolint:nilerr // status reports it, and a change of the definition causes another pass
	}
	granted := meta.FindStatusCondition(definition.Status.Conditions, v1alpha1.ConditionAccessGranted)
	s.own.granted = granted != nil && granted.Status == metav1.ConditionTrue && granted.ObservedGeneration == definition.Generation
	if !s.own.granted {
		s.own.problem = fmt.Sprintf("the ServiceAccount of ConfigurationProfileDefinition %s does not yet have the rights that the definition declares", name)
		if granted != nil && granted.Message != "" {
			s.own.problem += ": " + granted.Message
		}
	}
	return found, nil
}

func (s *scope) pinnedDefinition(ctx context.Context) (*cel.Profile, error) {
	pinned := s.plan.Status.Definition
	if pinned == nil {
		return nil, nil
	}
	if current := s.own.current; current != nil && s.own.granted && current.Digest() == pinned.Digest {
		return current, nil
	}
	kept, err := s.Packs.Read(ctx, pinned.Manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the definition that plan %s was computed from: %w", s.plan.Name, err)
	}
	for _, raw := range kept {
		definition, err := cel.OfManifest(raw)
		if err != nil {
			return nil, err
		}
		return s.compiled(definition.Name, &definition.Spec)
	}
	return nil, fmt.Errorf("the definition that plan %s was computed from is not stored", s.plan.Name)
}

const maxCompiled = 100

func (r *reconciler) compiled(name string, spec *v1alpha1.ConfigurationProfileDefinitionSpec) (*cel.Profile, error) {
	key := name + "/" + cel.Digest(spec) + "/" + spec.Description
	r.mu.Lock()
	found := r.definitions[key]
	r.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := cel.New(name, spec)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.definitions) >= maxCompiled || r.definitions == nil {
		r.definitions = map[string]*cel.Profile{}
	}
	r.definitions[key] = made
	return made, nil
}

// definition returns the definition for the phase of the plan. A plan is computed from the current
// definition. A computed plan keeps its pinned definition.
func (s *scope) definition() *cel.Profile {
	switch s.plan.Status.Phase {
	case "", v1alpha1.PhasePending, v1alpha1.PhaseDrafting, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseIgnored, v1alpha1.PhaseFailed, v1alpha1.PhaseExpired:
		if !s.own.granted {
			return nil
		}
		return s.own.current
	default:
		return s.own.pinned
	}
}

// factsNow returns the present facts of the cluster for the profile of the plan.
func (s *scope) factsNow() (profile.Facts, error) {
	if s.own == nil {
		return s.Watched.Facts()
	}
	definition := s.definition()
	if definition == nil {
		return profile.NewFacts(), nil
	}
	facts := s.own.facts[definition.Digest()]
	if facts == nil {
		return profile.NewFacts(), errors.New("reading the cluster")
	}
	return facts.Facts()
}

func (s *scope) pin(ctx context.Context) error {
	status := &s.plan.Status
	if s.own == nil || s.own.current == nil {
		return nil
	}
	current := s.own.current
	kept, err := cel.Manifest(string(s.plan.Spec.Profile), current.Spec())
	if err != nil {
		return err
	}
	root, err := s.Packs.Put(ctx, []manifest.Object{kept})
	if err != nil {
		return fmt.Errorf("storing the definition of plan %s: %w", s.plan.Name, err)
	}
	status.Definition = &v1alpha1.PlanDefinition{Digest: current.Digest(), Manifest: root, Requirements: cel.Declared(current.Spec())}
	s.own.pinned = current
	return nil
}

func (s *scope) edited() bool {
	return s.own != nil && s.own.current != nil && s.own.pinned != nil && s.own.current.Digest() != s.own.pinned.Digest()
}

func (r *reconciler) plansOfDefinition(ctx context.Context, definition client.Object) []reconcile.Request {
	return r.plansOf(ctx, definition.GetName())
}

func (r *reconciler) engineOf(name v1alpha1.ProfileName) *rollout.Engine {
	if !v1alpha1.IsOwn(name) {
		return r.Engine
	}
	engine, err := r.Identities.Engine(name)
	if err != nil {
		return nil
	}
	return engine
}

// pinnedDigest returns the digest of the definition from which the plan is computed; empty for a
// built-in profile.
func (s *scope) pinnedDigest() string {
	if s.own == nil || s.plan.Status.Definition == nil {
		return ""
	}
	return s.plan.Status.Definition.Digest
}
