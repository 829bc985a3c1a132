package plan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/store/claim"
)

func (s *scope) claimKey() string { return governance.ClaimKey(string(s.plan.Spec.Profile)) }

func (s *scope) me() string { return governance.Holder(s.plan.Name, string(s.plan.UID)) }

// lock makes the plan the holder of its profile, or finds that another active plan holds it.
func (s *scope) lock(ctx context.Context) (locked bool, err error) {
	err = s.Claims.Acquire(ctx, s.claimKey(), s.me())
	var taken *claim.HeldError
	if !errors.As(err, &taken) {
		s.hold(err == nil)
		return false, err
	}
	name, uid := governance.ParseHolder(taken.Holder)
	gone, err := s.inactive(ctx, name, uid)
	if err != nil {
		return false, err
	}
	if gone {
		err = s.Claims.TakeOver(ctx, s.claimKey(), taken.Holder, s.me())
		if !errors.As(err, &taken) {
			s.hold(err == nil)
			return false, err
		}
		name, _ = governance.ParseHolder(taken.Holder)
	}
	if s.plan.Status.Phase == v1alpha1.PhaseInProgress {
		if err := s.endRun(ctx, v1alpha1.PhaseFailed); err != nil {
			return false, err
		}
	}
	s.holds = false
	s.restart("")
	return true, s.move(governance.EventLocked, governance.ReasonProfileLocked,
		fmt.Sprintf("profile %s is held by plan %q; delete that plan or set its action to Ignore", s.plan.Spec.Profile, name))
}

// hold records whether the plan holds its profile. After a change it enqueues all plans, because
// some may wait for the profile.
func (s *scope) hold(holds bool) {
	if s.holds != holds {
		s.holds = holds
		s.Poke()
	}
}

// holder returns the name of another active plan that holds the profile, or "".
func (s *scope) holder(ctx context.Context) (string, error) {
	holder, err := s.Claims.Holder(ctx, s.claimKey())
	if err != nil || holder == "" || holder == s.me() {
		return "", err
	}
	name, uid := governance.ParseHolder(holder)
	gone, err := s.inactive(ctx, name, uid)
	if err != nil || gone {
		return "", err
	}
	return name, nil
}

// inactive reports whether a holder was deleted or does not need the profile.
func (s *scope) inactive(ctx context.Context, name, uid string) (bool, error) {
	var other v1alpha1.ConfigurationPlan
	err := s.Reader.Get(ctx, client.ObjectKey{Name: name}, &other)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading plan %s, which holds profile %s: %w", name, s.plan.Spec.Profile, err)
	}
	return string(other.UID) != uid || !governance.Needs(other.Spec.Action, other.Status.Phase), nil
}

func (s *scope) release(ctx context.Context) error {
	if err := releaseIfHeld(s.Claims.Release(ctx, s.claimKey(), s.me())); err != nil {
		return err
	}
	if s.holds {
		s.Engine.Forget(string(s.plan.Spec.Profile))
		s.Engine.Observer.Drop(targetsOf(s.plan.Spec.Profile))
	}
	s.hold(false)
	return nil
}

func releaseIfHeld(err error) error {
	var taken *claim.HeldError
	if errors.As(err, &taken) {
		return nil // another plan holds it, which is fine
	}
	return err
}

// forget releases the profiles of a deleted plan, and enqueues the plans that wait for them.
func (r *reconciler) forget(ctx context.Context, name string) error {
	// The cache may be stale: a new plan may already have the same name.
	var there v1alpha1.ConfigurationPlan
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, &there); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading plan %s: %w", name, err)
	}
	if err := r.abandon(ctx, name, string(there.UID)); err != nil {
		return err
	}
	r.mu.Lock()
	m := r.memories[name]
	r.mu.Unlock()
	for _, profile := range r.profilesOf(m) {
		key := governance.ClaimKey(string(profile))
		holder, err := r.Claims.Holder(ctx, key)
		if err != nil {
			return err
		}
		if plan, uid := governance.ParseHolder(holder); plan == name && uid != string(there.UID) {
			if engine := r.engineOf(profile); engine != nil {
				engine.Forget(string(profile))
				engine.Observer.Drop(targetsOf(profile))
			}
			if err := releaseIfHeld(r.Claims.Release(ctx, key, holder)); err != nil {
				return err
			}
		}
	}
	if m != nil {
		r.mu.Lock()
		delete(r.memories, name)
		r.mu.Unlock()
	}
	r.Poke()
	return nil
}

// profilesOf returns the profiles that a deleted plan may hold. This process knows the profile only
// if it has a memory of the plan. Without it, the next plan takes over a user-defined profile.
func (r *reconciler) profilesOf(m *memory) []v1alpha1.ProfileName {
	var names []v1alpha1.ProfileName
	for _, p := range r.Profiles {
		names = append(names, p.Name())
	}
	if m != nil && v1alpha1.IsOwn(m.profile) {
		names = append(names, m.profile)
	}
	return names
}
