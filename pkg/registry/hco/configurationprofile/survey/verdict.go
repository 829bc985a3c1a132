package survey

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// trial is an item with the cluster's answer.
type trial struct {
	profile.Item
	ref manifest.Ref
	// action is empty if the cluster refused the item or did not answer.
	action v1alpha1.ItemAction
	// refusal is the cluster's reason for refusing the object.
	refusal string
	// err is the reason why the cluster did not answer.
	err error
}

// read records the cluster's answer, and the impact of the change on nodes.
func (t *trial) read(seen preview.Item, facts profile.Facts) {
	weighed, err := governance.Weighed(t.Item, facts, seen.Before, seen.After)
	if err != nil {
		t.err = err
		return
	}
	t.Item = weighed
	switch {
	case seen.Unread, seen.Action == rollout.Deferred, seen.Failure != nil && seen.Failure.Reason == rollout.ReasonNotServed:
		why := seen.Message
		if seen.Failure != nil {
			why = seen.Failure.Message
		}
		t.err = fmt.Errorf("%s: %s", t.ref.ID, why)
	case seen.Failure != nil:
		t.refusal = seen.Failure.Message
	case !seen.Exists:
		t.action = v1alpha1.ItemCreate
	default:
		t.action, t.err = changes(seen)
	}
}

// changes returns the action for a previewed object: whether it would change.
func changes(seen preview.Item) (v1alpha1.ItemAction, error) {
	if seen.Before == nil || seen.After == nil {
		return v1alpha1.ItemNone, nil
	}
	before, err := governance.Live(seen.Before)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", seen.ID, err)
	}
	after, err := governance.Live(seen.After)
	if err != nil {
		return "", fmt.Errorf("reading %s as it would be: %w", seen.ID, err)
	}
	if governance.Unmarked(before).Digest == governance.Unmarked(after).Digest {
		return v1alpha1.ItemNone, nil
	}
	return v1alpha1.ItemUpdate, nil
}

// findings holds the observations of the cluster for one profile.
type findings struct {
	profile profile.Profile
	// plan is the plan that holds the profile, or nil.
	plan  *hco.ConfigurationPlan
	facts profile.Facts
	// unread holds the errors of unreadable facts, by the name of the definition.
	unread map[string]error
	// lacks is the error for a missing requirement, or for items that cannot be computed.
	lacks error
	items []trial
}

// verdict returns the status that follows from the observations. It is a pure function.
func (s findings) verdict() v1alpha1.ConfigurationProfileStatus {
	status := v1alpha1.ConfigurationProfileStatus{Requirements: s.requirements()}
	if s.plan != nil {
		status.Plan, status.PlanPhase = s.plan.Name, v1alpha1.Phase(s.plan.Status.Phase)
	}
	status.Prerequisites = s.prerequisites(status.Requirements)
	status.Items, status.ImpactSeverity = s.impact()
	status.State, status.Message = s.state(status.Prerequisites)
	return status
}

// prerequisites returns the combined state of all requirements. One missing requirement gives
// Missing, even if other requirements could not be read.
func (s findings) prerequisites(requirements []v1alpha1.ProfileRequirement) v1alpha1.PrerequisiteState {
	has := func(state v1alpha1.PrerequisiteState) bool {
		return slices.ContainsFunc(requirements, func(r v1alpha1.ProfileRequirement) bool { return !r.Optional && r.State == state })
	}
	switch {
	case has(v1alpha1.PrerequisiteMissing):
		return v1alpha1.PrerequisiteMissing
	case has(v1alpha1.PrerequisiteUnknown):
		return v1alpha1.PrerequisiteUnknown
	case errors.As(s.lacks, new(*profile.MissingError)):
		return v1alpha1.PrerequisiteMissing // the current version is too old
	default:
		return v1alpha1.PrerequisiteMet
	}
}

func (s findings) requirements() []v1alpha1.ProfileRequirement {
	var out []v1alpha1.ProfileRequirement
	for _, requirement := range s.profile.Requires() {
		one := v1alpha1.ProfileRequirement{Definition: requirement.Definition, Kind: requirement.Kind.Kind, Optional: requirement.Optional, State: v1alpha1.PrerequisiteMet}
		if _, served := s.facts.Definitions[requirement.Definition]; !served {
			one.State, one.Message = v1alpha1.PrerequisiteMissing, "install "+requirement.Install
		}
		if err := s.unread[requirement.Definition]; err != nil {
			one.State, one.Message = v1alpha1.PrerequisiteUnknown, governance.Clip(err.Error())
		}
		out = append(out, one)
	}
	return out
}

// impact returns the items of a plan, and the highest severity. It returns none while a part is
// unknown.
func (s findings) impact() ([]v1alpha1.ProfileItem, v1alpha1.ImpactSeverity) {
	highest, known := v1alpha1.ImpactNone, len(s.items) > 0
	var out []v1alpha1.ProfileItem
	for _, t := range s.items {
		item := v1alpha1.ProfileItem{
			Name: t.Name, TargetRef: v1alpha1.TargetRef{APIVersion: t.ref.APIVersion(), Kind: t.ref.Kind, Namespace: t.ref.Namespace, Name: t.ref.Name},
			Action: t.action, ImpactSeverity: v1alpha1.ImpactSeverity(t.Impact), ImpactReason: t.Reason, Notes: t.Notes, Message: governance.Clip(t.refusal),
		}
		if t.Blast != nil {
			item.BlastRadius = &v1alpha1.BlastRadius{Pools: t.Blast.Pools, Nodes: t.Blast.Nodes, Reboot: t.Blast.Reboot, Waves: t.Blast.Waves}
		}
		switch {
		case t.err != nil:
			item.Message, known = governance.Clip(t.err.Error()), false
		case t.action == v1alpha1.ItemNone:
			item.ImpactSeverity, item.ImpactReason, item.BlastRadius = v1alpha1.ImpactNone, "it is as it should be already", nil
		default:
			highest = governance.Worse(highest, t.Impact)
		}
		out = append(out, item)
	}
	if !known {
		return out, ""
	}
	return out, v1alpha1.ImpactSeverity(highest)
}

// state reports whether the profile is in effect:
//
//   - A profile with missing requirements is not in effect.
//   - If a part could not be read, the state is unknown, regardless of plans.
//   - If a plan would change nothing, the profile is in effect, with or without a plan.
//   - If a plan would change something, the profile has drifted if a plan had applied it before.
func (s findings) state(prerequisites v1alpha1.PrerequisiteState) (v1alpha1.ProfileState, string) {
	if prerequisites == v1alpha1.PrerequisiteMissing {
		return v1alpha1.ProfileInactive, governance.Clip(s.lacks.Error())
	}
	if why := s.unknown(); why != "" {
		return v1alpha1.ProfileUnknown, governance.Clip(why)
	}
	differing, nodes := s.differing()
	switch {
	case s.sticky():
		// The plan reports what it applied. A plan computed today would differ.
		return s.byPlan()
	case s.applied() && len(differing) > 0:
		return v1alpha1.ProfileDrifted, governance.Clip(fmt.Sprintf("not as plan %s says: %s", s.plan.Name, strings.Join(differing, ", ")))
	case s.applied():
		return v1alpha1.ProfileActive, ""
	case s.plan != nil:
		return v1alpha1.ProfileInactive, governance.Clip(fmt.Sprintf("plan %s is %s: %s", s.plan.Name, s.plan.Status.Phase, s.plan.Status.Message))
	case len(differing) > 0:
		return v1alpha1.ProfileInactive, ""
	case nodes > 0:
		return v1alpha1.ProfileInactive, fmt.Sprintf("everything is set as the profile says, but %d nodes do not have it yet", nodes)
	default:
		return v1alpha1.ProfileActive, "the cluster is as the profile says, but no plan keeps it so"
	}
}

// unknown returns the unreadable facts, in words.
func (s findings) unknown() string {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(s.unread)) {
		reasons = append(reasons, s.unread[name].Error())
	}
	if len(reasons) == 0 && s.lacks != nil {
		reasons = append(reasons, "a plan cannot be computed: "+s.lacks.Error())
	}
	for _, t := range s.items {
		if t.err != nil {
			reasons = append(reasons, fmt.Sprintf("asking what item %s would do: %s", t.Name, t.err))
		}
	}
	return strings.Join(reasons, "; ")
}

// differing returns the targets that the profile would change. nodes is the number of nodes that
// must still be rebooted for the unchanged targets.
func (s findings) differing() (names []string, nodes int64) {
	for _, t := range s.items {
		switch t.action {
		case v1alpha1.ItemNone:
			if t.Blast != nil && t.Blast.Reboot {
				nodes += t.Blast.Nodes
			}
		case v1alpha1.ItemCreate:
			names = append(names, t.ref.ID.String()+" does not exist")
		default:
			names = append(names, t.ref.ID.String())
		}
	}
	return names, nodes
}

func (s findings) applied() bool {
	if s.plan == nil || s.plan.Spec.RestoreRun != 0 {
		return false
	}
	phase := v1alpha1.Phase(s.plan.Status.Phase)
	return phase == v1alpha1.PhaseCompleted || phase == v1alpha1.PhaseDrifted
}

// sticky reports whether the plan has applied other items than a plan computed today would have.
func (s findings) sticky() bool {
	if !s.applied() {
		return false
	}
	planned, today := map[string]string{}, map[string]string{}
	for _, item := range s.plan.Status.Items {
		planned[item.Name] = item.Digest
	}
	for _, t := range s.items {
		marked, err := governance.Marked(t.Item, s.plan.Name)
		if err != nil {
			return true
		}
		today[t.Name] = string(marked.Digest)
	}
	return governance.Outdated(planned, today)
}

// byPlan returns the state that the plan reports.
func (s findings) byPlan() (v1alpha1.ProfileState, string) {
	state := v1alpha1.ProfileInactive
	switch {
	case s.plan.Status.Phase == hco.PhaseDrifted:
		state = v1alpha1.ProfileDrifted
	case meta.IsStatusConditionTrue(s.plan.Status.Conditions, v1alpha1.ConditionProfileActive):
		state = v1alpha1.ProfileActive
	}
	return state, governance.Clip(fmt.Sprintf("this is the state that plan %s reports; a plan computed today would be different", s.plan.Name))
}
