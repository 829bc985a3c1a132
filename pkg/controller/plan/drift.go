package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// watch checks whether a plan is still in effect. It reports changes by other writers, and writes
// nothing to the cluster.
func (s *scope) watch(ctx context.Context) error {
	status := &s.plan.Status
	if s.changed() && s.reconsider() {
		return s.move(governance.EventDraft, "", "")
	}
	facts, err := s.factsNow()
	if err != nil {
		return nil //nolint:nilerr // an unknown state changes nothing
	}
	s.facts = facts
	if missing := s.missing(facts); missing != nil && s.plan.Spec.RestoreRun == 0 {
		return s.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
	}
	s.upgrade(ctx)
	manifests, err := s.Packs.Read(ctx, status.Manifests)
	if err != nil {
		return fmt.Errorf("reading the manifests of plan %s: %w", s.plan.Name, err)
	}
	drifts, known, err := s.drifts(ctx, manifests)
	if err != nil {
		return err
	}
	s.health(ctx, manifests)
	switch drifted := status.Phase == v1alpha1.PhaseDrifted; {
	case len(drifts) > 0:
		message := "not as the plan says: " + strings.Join(drifts, "; ") +
			"; to enforce the plan, kubectl penstock plan run " + s.plan.Name + ", or set spec.action to DryRun, then review and approve the plan that is computed; to accept the drift, set Ignore, or delete the plan"
		if drifted {
			status.Message = governance.Clip(message)
			return nil
		}
		return s.move(governance.EventDrift, "", message)
	case drifted && known:
		event := governance.EventReverted
		for _, item := range status.Items {
			if item.State == v1alpha1.ItemFailed {
				event = governance.EventRevertedWithErrors
			}
		}
		message := "the targets are again as the plan says"
		if run := s.plan.Spec.RestoreRun; run != 0 {
			message += ": " + governance.Restored(run)
		}
		return s.move(event, "", message)
	default:
		return nil
	}
}

// reconsider reports whether a change of spec requires another plan.
func (s *scope) reconsider() bool {
	spec, status := s.plan.Spec, s.plan.Status
	fresh := status.Approval != nil && status.Approval.Run == 0
	// A missing approval was withdrawn, by DryRun and then Apply between two passes.
	return spec.Action == v1alpha1.ActionDryRun || status.Approval == nil || fresh || status.InputsHash != governance.InputsHash(spec)
}

// upgrade reports whether the plan would be different now. It sends no request.
func (s *scope) upgrade(ctx context.Context) {
	status := &s.plan.Status
	if s.plan.Spec.RestoreRun != 0 {
		return
	}
	if s.edited() {
		s.outdated = true // also if only the waits changed
		return
	}
	targets, err := s.wanted(ctx, s.facts)
	if err != nil {
		return // missing objects were handled before
	}
	planned, today := map[string]string{}, map[string]string{}
	for _, item := range status.Items {
		planned[item.Name] = item.Digest
	}
	for _, target := range targets {
		today[target.Name] = string(target.object.Digest)
	}
	if s.outdated = governance.Outdated(planned, today); !s.outdated {
		status.OperatorVersion = s.Version
	}
}

// drifts compares the targets with the applied content, if they changed since, and describes each
// difference. known is false while the answer is unknown.
func (s *scope) drifts(ctx context.Context, manifests map[manifest.Digest][]byte) (drifts []string, known bool, err error) {
	status := &s.plan.Status
	s.restart(fmt.Sprintf("watch/%s/%d", status.PlanHash, status.Run))
	var steps []stage.Step
	names := map[manifest.ID]int{}
	for i, item := range status.Items {
		if !governance.Done(item.State) {
			continue
		}
		ref := refOf(item)
		names[ref.ID] = i
		steps = append(steps, stage.Step{Ref: ref, Policy: stage.Policy{
			Own: stage.Shared, ReadOnly: true, Delete: planwork.Goes(item),
		}})
	}
	if len(steps) == 0 {
		return nil, true, nil
	}
	report, err := s.reconcile(ctx, s.work, steps, planwork.Bodies(manifests))
	if err != nil {
		return nil, false, err
	}
	known = true
	for _, phase := range report.Layers[0].Phases {
		known = known && phase.Reached
		for _, failure := range phase.Failures {
			switch failure.Reason {
			case rollout.ReasonDrifted:
				item := &status.Items[names[failure.ID]]
				item.Message = governance.Clip("drifted: " + failure.Message)
				drifts = append(drifts, fmt.Sprintf("item %s: %s", item.Name, failure.Message))
				delete(names, failure.ID)
			case rollout.ReasonProbe:
				// A failed probe is no drift.
			default:
				known = false
			}
		}
	}
	for _, i := range names {
		if item := &status.Items[i]; known && strings.HasPrefix(item.Message, "drifted: ") {
			item.Message = "again as the plan says"
		}
	}
	return drifts, known, nil
}
