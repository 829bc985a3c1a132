package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// begin starts a run. The status records the run and the used approval before the first write.
func (s *scope) begin(ctx context.Context) error {
	status := &s.plan.Status
	message := "executing"
	if status.Approval.Mode == v1alpha1.ApprovalStanding {
		message = fmt.Sprintf("executing without a review: action: Apply of %s approved the first plan in advance", status.Approval.Username)
	}
	if err := s.move(governance.EventApproved, "", governance.Clip(message)); err != nil {
		return err
	}
	status.Run++
	status.Approval.Run = status.Run
	for i := range status.Items {
		item := &status.Items[i]
		item.StartedAt, item.AppliedAt, item.PausedSeconds, item.Applied = nil, nil, 0, false
		s.settle(item, v1alpha1.ItemPending, "")
	}
	s.restart(fmt.Sprintf("run/%d", status.Run))
	return s.save(ctx)
}

// execute executes the items of a run in order, as far as possible now.
func (s *scope) execute(ctx context.Context) error {
	status := &s.plan.Status
	if stop, why := s.withdrawn(); stop {
		if err := s.endRun(ctx, v1alpha1.PhaseDrafting); err != nil {
			return err
		}
		return s.move(governance.EventDraft, "", why)
	}
	facts, err := s.factsNow()
	if err != nil {
		status.Message = governance.Clip("waiting for the facts of the cluster: " + err.Error())
		return nil
	}
	if missing := s.missing(facts); missing != nil && s.plan.Spec.RestoreRun == 0 {
		if err := s.endRun(ctx, v1alpha1.PhasePrerequisiteFailed); err != nil {
			return err
		}
		return s.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
	}
	s.facts = facts
	turn, err := s.turn()
	if err != nil {
		return err
	}
	if s.frozen() {
		return nil
	}
	if s.allowed != status.Run {
		if who, lacks, err := s.lacks(ctx); err != nil {
			return err
		} else if len(lacks) > 0 {
			return s.fail(ctx, governance.ReasonApproverLacksRights, fmt.Sprintf("%s approved the plan and cannot %s", who, strings.Join(lacks, ", ")))
		}
		s.allowed = status.Run
	}
	manifests, err := s.Packs.Read(ctx, status.Manifests)
	if err != nil {
		return fmt.Errorf("reading the manifests of plan %s: %w", s.plan.Name, err)
	}
	if ready, err := s.unchanged(ctx, manifests); err != nil || !ready {
		return err
	}
	for i := range status.Items {
		item := &status.Items[i]
		if item.State == v1alpha1.ItemPending {
			if waits, err := s.outOfTurn(ctx, turn, i); err != nil || waits {
				return err
			}
			if err := s.start(ctx, item); err != nil {
				return err
			}
		}
		if item.State == v1alpha1.ItemInProgress {
			if err := s.proceed(ctx, item, manifests); err != nil {
				return err
			}
		}
		switch {
		case item.State == v1alpha1.ItemInProgress:
			status.Message = governance.Clip(fmt.Sprintf("item %d of %d: %s", i+1, len(status.Items), item.Message))
			return nil
		case item.State == v1alpha1.ItemFailed && s.plan.Spec.FailurePolicy != v1alpha1.FailurePolicyContinue:
			return s.fail(ctx, cmp.Or(s.reason, governance.ReasonItemFailed), fmt.Sprintf(
				"item %s failed: %s; the items after it are Pending; %s plans the rest, and a rollback undoes the executed changes", item.Name, item.Message, governance.RecomputeCommand(s.plan.Name)))
		}
	}
	return s.finish(ctx)
}

// unchanged runs before the first write of a run. It checks that every target is as reviewed, and
// that the plan would take no fields beyond the reviewed fields. The first item may reboot nodes,
// and must not do so for a plan that fails at the second item. Each item is checked again in its
// turn.
func (s *scope) unchanged(ctx context.Context, manifests map[manifest.Digest][]byte) (bool, error) {
	status := &s.plan.Status
	seen := s.followItems()
	if slices.ContainsFunc(status.Items, func(item v1alpha1.PlanItem) bool { return item.State != v1alpha1.ItemPending }) {
		return true, nil
	}
	if !seen {
		status.Message = "waiting to see the targets"
		return false, nil
	}
	for i := range status.Items {
		item := &status.Items[i]
		why, known := s.stale(*item)
		if known && why == "" {
			var err error
			if why, err = s.takesMoreFields(ctx, *item, manifests); err != nil {
				return false, err
			}
		}
		if why == "" {
			continue // an object that cannot be watched is read in its turn
		}
		s.settle(item, v1alpha1.ItemFailed, why)
		return false, s.fail(ctx, governance.ReasonPlanStale, s.staleMessage(*item)+"; nothing was applied")
	}
	return true, nil
}

// unknownFreeze is the interval of checks while it is unknown whether the cluster is frozen: no
// event reports the answer.
const unknownFreeze = 2 * time.Second

// frozen reports whether a freeze forbids writes, and writes that to status. The time does not
// count against WaitTimeout, as during a pause.
func (s *scope) frozen() bool {
	freeze, err := s.Freezes.Frozen()
	switch {
	case err != nil:
		s.plan.Status.Message = governance.Clip("waiting: " + err.Error())
		s.soon(unknownFreeze)
	case freeze != nil:
		s.reason, s.plan.Status.Message = governance.ReasonFrozen, governance.Clip(freeze.String()+"; nothing is written")
	default:
		return false
	}
	for i := range s.plan.Status.Items {
		if item := &s.plan.Status.Items[i]; item.State == v1alpha1.ItemInProgress {
			s.pause(item, true)
		}
	}
	return true
}

// withdrawn reports whether a run must stop, with the reason.
func (s *scope) withdrawn() (bool, string) {
	spec, status := s.plan.Spec, s.plan.Status
	switch {
	case spec.Action != v1alpha1.ActionApply || status.Approval == nil:
		return true, "the approval was withdrawn while the plan was executed; executed changes stay, and the rest is planned again"
	case status.InputsHash != governance.InputsHash(spec):
		return true, "spec was changed while the plan was executed; the rest is planned again"
	case status.Approval.PlanHash != status.PlanHash || status.Approval.Run != status.Run:
		return true, "another plan was approved while this one was executed; the rest is planned again"
	case spec.ApprovedPlanHash != "" && spec.ApprovedPlanHash != status.PlanHash:
		return true, "spec.approvedPlanHash was changed while the plan was executed; the rest is planned again"
	default:
		return false, ""
	}
}

// start begins the turn of an item. It stores that before the first write. A process with an old
// status gets a conflict, so two processes cannot execute the same item.
func (s *scope) start(ctx context.Context, item *v1alpha1.PlanItem) error {
	now := s.now()
	item.StartedAt = &now
	s.settle(item, v1alpha1.ItemInProgress, "applying")
	if err := s.save(ctx); err != nil {
		return err
	}
	// The record of the run must exist even if the process dies now.
	return s.record(ctx, "")
}

func (s *scope) proceed(ctx context.Context, item *v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) error {
	// 1. The engine applies it to the reviewed state.
	applied := true
	if item.Action != v1alpha1.ItemNone {
		var err error
		if applied, err = s.apply(ctx, item, manifests); err != nil {
			return err
		}
	} else if why, known := s.stale(*item); known && why != "" {
		// Nothing is written for this item, so its wait would never end.
		s.reason = governance.ReasonPlanStale
		s.settle(item, v1alpha1.ItemFailed, "stale: "+why)
	}
	// 2. It waits until the target is healthy.
	if applied && item.State == v1alpha1.ItemInProgress {
		if err := s.await(ctx, item, manifests); err != nil {
			return err
		}
	}
	// 3. It limits the time.
	s.timeOut(item)
	return nil
}

// apply lets the engine apply an item. It reports whether the item is applied and, if its kind has
// a probe, available.
func (s *scope) apply(ctx context.Context, item *v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) (bool, error) {
	step := stage.Step{Ref: refOf(*item), Policy: stage.Policy{
		Own: stage.Shared, Expect: item.Fingerprint, Takes: mayTake(*item), Written: item.Applied, Delete: item.Action == v1alpha1.ItemDelete,
	}}
	report, err := s.reconcile(ctx, fmt.Sprintf("run/%d/%s", s.plan.Status.Run, item.Name), []stage.Step{step}, planwork.Bodies(manifests))
	if err != nil {
		return false, err
	}
	if entry, written := s.inventory.Entries[step.ID]; written && !entry.Intent() {
		s.written(item)
	}
	for _, phase := range report.Layers[0].Phases {
		if len(phase.Failures) > 0 {
			s.hindered(item, phase.Failures[0])
			return false, nil
		}
	}
	complete := report.Layers[0].Complete
	if complete {
		s.written(item)
	}
	return complete, nil
}

// written records that the target of an item is written, and when that was first known.
func (s *scope) written(item *v1alpha1.PlanItem) {
	if now := s.now(); item.AppliedAt == nil {
		item.AppliedAt = &now
	}
	item.Applied = true
}

// mayTake returns the fields that the reviewed plan may take from other managers.
func mayTake(item v1alpha1.PlanItem) []stage.Take {
	var takes []stage.Take
	for _, one := range item.Takes {
		takes = append(takes, stage.Take{Manager: one.Manager, Fields: one.Fields})
	}
	return takes
}

func (s *scope) hindered(item *v1alpha1.PlanItem, failure rollout.Failure) {
	if failure.Reason == rollout.ReasonRejected {
		failure.Message = s.redacted(failure.ID, nil, failure.Message)
	}
	switch {
	case failure.Reason == rollout.ReasonStale:
		s.reason = governance.ReasonPlanStale
		s.settle(item, v1alpha1.ItemFailed, "stale: "+failure.Message)
	case failure.NeedsPerson:
		// The target has the plan's annotation, so this run wrote it before a crash.
		if failure.Reason == rollout.ReasonDrifted {
			s.written(item)
		}
		s.settle(item, v1alpha1.ItemFailed, failure.Message)
	default:
		item.Message = governance.Clip(failure.Message)
	}
}

// reconcile lets the engine reconcile targets, in one layer with one stage.
func (s *scope) reconcile(ctx context.Context, key string, steps []stage.Step, manifests rollout.Bodies) (rollout.Report, error) {
	stages, err := stage.Compile([]stage.Phase{{Name: "targets", Steps: steps}}, stage.Options{Probes: probe.Builtin()})
	if err != nil {
		return rollout.Report{}, err
	}
	if len(stages) != 1 {
		// Waves order objects that belong together. Items are independent.
		merged := stages[0]
		for _, other := range stages[1:] {
			merged.Steps, merged.Gates = append(merged.Steps, other.Steps...), append(merged.Gates, other.Gates...)
		}
		stages = []stage.Stage{merged}
	}
	// The engine deletes objects that are in its inventory and in no layer. A plan deletes only the
	// targets of its delete items, so the inventory has only the given targets.
	inventory := rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}, Reached: s.inventory.Reached}
	for _, step := range steps {
		if entry, known := s.inventory.Entries[step.ID]; known {
			inventory.Entries[step.ID] = entry
		}
	}
	report, err := s.Engine.Reconcile(ctx, rollout.Work{
		Owner: string(s.plan.Spec.Profile), Bodies: manifests, Inventory: inventory,
		Layers: []rollout.Layer{{Key: key, Revision: 1, Stages: stages}},
		// Annotations identify the written targets, so the inventory need not be stored.
		Save: func(_ context.Context, inventory rollout.Inventory) error { s.inventory = inventory; return nil },
	})
	if err != nil {
		return report, err
	}
	s.soon(report.RequeueAfter)
	for _, event := range report.Events {
		s.event(s.plan, event.Warning, event.Reason, event.Message)
	}
	return report, nil
}

func (s *scope) fail(ctx context.Context, reason, message string) error {
	if err := s.endRun(ctx, v1alpha1.PhaseFailed); err != nil {
		return err
	}
	return s.move(governance.EventFailed, reason, message)
}

// finish ends a run after the turn of its last item.
func (s *scope) finish(ctx context.Context) error {
	event, outcome, message := governance.EventDone, v1alpha1.PhaseCompleted, "all items are applied and healthy"
	if run := s.plan.Spec.RestoreRun; run != 0 {
		message = governance.Restored(run) + "; computing the plan again restores the values of its profile"
	}
	var failed []string
	for _, item := range s.plan.Status.Items {
		if item.State == v1alpha1.ItemFailed {
			failed = append(failed, item.Name+": "+item.Message)
		}
	}
	if len(failed) > 0 {
		event, outcome = governance.EventDoneWithErrors, v1alpha1.PhaseCompletedWithErrors
		message = "items failed: " + strings.Join(failed, "; ") + "; " + governance.RecomputeCommand(s.plan.Name) + " plans the rest"
	}
	if err := s.endRun(ctx, outcome); err != nil {
		return err
	}
	return s.move(event, "", message)
}
