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

func (v *visit) claimKey() string { return governance.ClaimKey(string(v.plan.Spec.Profile)) }

func (v *visit) me() string { return governance.Holder(v.plan.Name, string(v.plan.UID)) }

// lock makes the plan the holder of its profile, or finds that another active plan
// is.
func (v *visit) lock(ctx context.Context) (locked bool, err error) {
	err = v.Claims.Acquire(ctx, v.claimKey(), v.me())
	var taken *claim.HeldError
	if !errors.As(err, &taken) {
		v.hold(err == nil)
		return false, err
	}
	name, uid := governance.ParseHolder(taken.Holder)
	gone, err := v.inactive(ctx, name, uid)
	if err != nil {
		return false, err
	}
	if gone {
		err = v.Claims.TakeOver(ctx, v.claimKey(), taken.Holder, v.me())
		if !errors.As(err, &taken) {
			v.hold(err == nil)
			return false, err
		}
		name, _ = governance.ParseHolder(taken.Holder)
	}
	if v.plan.Status.Phase == v1alpha1.PhaseInProgress {
		if err := v.endRun(ctx, v1alpha1.PhaseFailed); err != nil {
			return false, err
		}
	}
	v.holds = false
	v.restart("")
	return true, v.move(governance.EventLocked, governance.ReasonProfileLocked,
		fmt.Sprintf("profile %s is held by plan %q; delete that plan or set its action to Ignore", v.plan.Spec.Profile, name))
}

// hold notes whether the plan has its profile. Plans that had it, or wait for it, are
// told that this changed.
func (v *visit) hold(holds bool) {
	if v.holds != holds {
		v.holds = holds
		v.Poke()
	}
}

// holder is the name of the active plan that holds the profile, if that is another
// one.
func (v *visit) holder(ctx context.Context) (string, error) {
	holder, err := v.Claims.Holder(ctx, v.claimKey())
	if err != nil || holder == "" || holder == v.me() {
		return "", err
	}
	name, uid := governance.ParseHolder(holder)
	gone, err := v.inactive(ctx, name, uid)
	if err != nil || gone {
		return "", err
	}
	return name, nil
}

// inactive tells whether a holder is gone or does not need the profile.
func (v *visit) inactive(ctx context.Context, name, uid string) (bool, error) {
	var other v1alpha1.ConfigurationPlan
	err := v.Reader.Get(ctx, client.ObjectKey{Name: name}, &other)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading plan %s, which holds profile %s: %w", name, v.plan.Spec.Profile, err)
	}
	return string(other.UID) != uid || !governance.Needs(other.Spec.Action, other.Status.Phase), nil
}

// release gives the profile free if the plan has it.
func (v *visit) release(ctx context.Context) error {
	if err := releaseIfHeld(v.Claims.Release(ctx, v.claimKey(), v.me())); err != nil {
		return err
	}
	if v.holds {
		v.Engine.Forget(string(v.plan.Spec.Profile))
		v.Engine.Observer.Drop(targetsOf(v.plan.Spec.Profile))
	}
	v.hold(false)
	return nil
}

func releaseIfHeld(err error) error {
	var taken *claim.HeldError
	if errors.As(err, &taken) {
		return nil // it is somebody else's, as it should be
	}
	return err
}

// forget lets go of a plan that is gone, and has those look that it locked out.
func (r *reconciler) forget(ctx context.Context, name string) error {
	// The cache may be behind: the name may be that of a new plan by now.
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

// profilesOf are those that a plan that is gone may hold: which one is known while this
// process remembers it. One that users define is taken over by the next plan otherwise.
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
