// Package survey computes the state of profiles in a cluster: missing requirements, the current
// effect of a plan, and whether the profile is in effect. It reads the objects, and tries the
// changes by dry-run. It stores nothing. An unreadable fact is Unknown, with the reason.
package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// DefaultTimeout bounds all requests to the cluster for one survey. Clients have a timeout of a
// minute.
const DefaultTimeout = 10 * time.Second

// Previewer returns the effect of an apply. *rollout.Engine implements it.
type Previewer interface {
	Preview(ctx context.Context, work rollout.Work, permit preview.Permit) (preview.Preview, error)
}

// Plans returns all plans.
type Plans func(ctx context.Context) ([]hco.ConfigurationPlan, error)

// Deps are the dependencies of a Surveyor. All except Timeout are required.
type Deps struct {
	Profiles []profile.Profile
	// Client reads the objects of the built-in profiles. It needs get and list.
	Client dynamic.Interface
	// Definitions returns the user-defined profiles. ClientOf returns the client that reads the
	// objects of a user-defined profile. Both may be nil.
	Definitions func(ctx context.Context) ([]*cel.Profile, error)
	ClientOf    func(name string) (dynamic.Interface, error)
	// Previewer previews items.
	Previewer Previewer
	Plans     Plans
	// Timeout bounds one survey; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Surveyor computes the state of profiles.
type Surveyor struct{ Deps }

// New returns a Surveyor. It sends no requests.
func New(deps Deps) *Surveyor {
	if deps.Timeout == 0 {
		deps.Timeout = DefaultTimeout
	}
	return &Surveyor{deps}
}

// all returns the built-in and the user-defined profiles, by name.
func (s *Surveyor) all(ctx context.Context) ([]profile.Profile, error) {
	profiles := slices.Clone(s.Profiles)
	if s.Definitions != nil {
		own, err := s.Definitions(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading definitions of profiles: %w", err)
		}
		for _, one := range own {
			profiles = append(profiles, one)
		}
	}
	slices.SortFunc(profiles, func(a, b profile.Profile) int { return cmp.Compare(a.Name(), b.Name()) })
	return profiles, nil
}

// Names returns the names of all profiles, sorted.
func (s *Surveyor) Names(ctx context.Context) ([]string, error) {
	profiles, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(profiles))
	for _, p := range profiles {
		names = append(names, string(p.Name()))
	}
	return names, nil
}

// Survey returns the selected profiles, by name:
//
//  1. Read the plans, which hold the profiles.
//  2. Read the objects that the profiles need.
//  3. Try the items of a plan on the cluster.
//  4. Compute the verdicts.
//
// Unreadable plans and definitions are an error.
func (s *Surveyor) Survey(ctx context.Context, selected func(name string) bool) ([]v1alpha1.ConfigurationProfile, error) {
	plans, err := s.Plans(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading plans: %w", err)
	}
	profiles, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	found := []v1alpha1.ConfigurationProfile{}
	for _, p := range profiles {
		name := string(p.Name())
		if !selected(name) {
			continue
		}
		one := v1alpha1.ConfigurationProfile{Description: p.Description(), Options: optionsIn(p)}
		one.Name = name
		one.Status = s.look(ctx, p, holder(plans, name))
		found = append(found, one)
	}
	return found, nil
}

func holder(plans []hco.ConfigurationPlan, name string) *hco.ConfigurationPlan {
	for i := range plans {
		if plan := &plans[i]; string(plan.Spec.Profile) == name && governance.Active(v1alpha1.Phase(plan.Status.Phase)) {
			return plan
		}
	}
	return nil
}

// look returns the status of one profile in the cluster.
func (s *Surveyor) look(ctx context.Context, p profile.Profile, plan *hco.ConfigurationPlan) v1alpha1.ConfigurationProfileStatus {
	seen := findings{profile: p, plan: plan}
	seen.facts, seen.unread = s.factsOf(ctx, p)
	seen.lacks = profile.Missing(p, seen.facts)
	if len(seen.unread) == 0 && seen.lacks == nil {
		var items []profile.Item
		if items, seen.lacks = p.Items(seen.facts, optionsOf(plan)); seen.lacks == nil {
			for _, item := range items {
				tried := s.try(ctx, p.Name(), seen.facts, item)
				tried.refusal = redacted(seen.facts, tried)
				seen.items = append(seen.items, tried)
			}
		}
	}
	return seen.verdict()
}

// redacted removes quotes of the target from a refusal: users who may read profiles need not have
// the right to read the target.
func redacted(facts profile.Facts, t trial) string {
	for _, live := range facts.Objects[t.ref.GroupKind()] {
		if t.refusal != "" && live.GetName() == t.ref.Name && live.GetNamespace() == t.ref.Namespace {
			return redact.Quotes(t.refusal, live.Object, t.Object)
		}
	}
	return t.refusal
}

// optionsOf returns the options that a plan sets for its profile.
func optionsOf(plan *hco.ConfigurationPlan) *v1alpha1.PlanOptions {
	if plan == nil || plan.Spec.Options == nil {
		return nil
	}
	var options v1alpha1.PlanOptions
	// The conversion only copies fields and cannot fail.
	if err := v1alpha1.Convert_hco_PlanOptions_To_v1alpha1_PlanOptions(plan.Spec.Options.DeepCopy(), &options, nil); err != nil {
		return nil
	}
	return &options
}

// try previews one item in the cluster.
func (s *Surveyor) try(ctx context.Context, owner v1alpha1.ProfileName, facts profile.Facts, item profile.Item) trial {
	object, err := manifest.Digester{}.New(item.Object)
	if err != nil {
		return trial{Item: item, err: err}
	}
	t := trial{Item: item, ref: object.Ref}
	found, err := s.Previewer.Preview(ctx, planwork.PreviewWork(owner, "survey", item.Name, object.Ref, false, planwork.Bodies{object.Digest: object.JSON}), nil)
	switch {
	case err != nil:
		t.err = err
	case len(found.Items) != 1:
		t.err = fmt.Errorf("previewing %s: %d answers for one question", object.ID, len(found.Items))
	default:
		t.read(found.Items[0], facts)
	}
	return t
}
