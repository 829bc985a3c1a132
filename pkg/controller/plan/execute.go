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

// begin starts a run: the approval is used up, and the record says so before
// anything is written.
func (v *visit) begin(ctx context.Context) error {
	status := &v.plan.Status
	message := "executing"
	if status.Approval.Mode == v1alpha1.ApprovalStanding {
		message = fmt.Sprintf("executing without a review: action: Apply of %s approved the first plan in advance", status.Approval.Username)
	}
	if err := v.move(governance.EventApproved, "", governance.Clip(message)); err != nil {
		return err
	}
	status.Run++
	status.Approval.Run = status.Run
	for i := range status.Items {
		item := &status.Items[i]
		item.StartedAt, item.AppliedAt, item.PausedSeconds, item.Applied = nil, nil, 0, false
		v.settle(item, v1alpha1.ItemPending, "")
	}
	v.restart(fmt.Sprintf("run/%d", status.Run))
	return v.save(ctx)
}

// execute does what can be done of a run now, one item after the other.
func (v *visit) execute(ctx context.Context) error {
	status := &v.plan.Status
	if stop, why := v.withdrawn(); stop {
		if err := v.endRun(ctx, v1alpha1.PhaseDrafting); err != nil {
			return err
		}
		return v.move(governance.EventDraft, "", why)
	}
	facts, err := v.factsNow()
	if err != nil {
		status.Message = governance.Clip("waiting for the facts of the cluster: " + err.Error())
		return nil
	}
	if missing := v.missing(facts); missing != nil && v.plan.Spec.RestoreRun == 0 {
		if err := v.endRun(ctx, v1alpha1.PhasePrerequisiteFailed); err != nil {
			return err
		}
		return v.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
	}
	v.facts = facts
	turn, err := v.turn()
	if err != nil {
		return err
	}
	if v.frozen() {
		return nil
	}
	if v.allowed != status.Run {
		if who, lacks, err := v.lacks(ctx); err != nil {
			return err
		} else if len(lacks) > 0 {
			return v.fail(ctx, governance.ReasonApproverLacksRights, fmt.Sprintf("%s approved the plan and may not %s", who, strings.Join(lacks, ", ")))
		}
		v.allowed = status.Run
	}
	manifests, err := v.Packs.Read(ctx, status.Manifests)
	if err != nil {
		return fmt.Errorf("reading the manifests of plan %s: %w", v.plan.Name, err)
	}
	if ready, err := v.unchanged(ctx, manifests); err != nil || !ready {
		return err
	}
	for i := range status.Items {
		item := &status.Items[i]
		if item.State == v1alpha1.ItemPending {
			if waits, err := v.outOfTurn(ctx, turn, i); err != nil || waits {
				return err
			}
			if err := v.start(ctx, item); err != nil {
				return err
			}
		}
		if item.State == v1alpha1.ItemInProgress {
			if err := v.proceed(ctx, item, manifests); err != nil {
				return err
			}
		}
		switch {
		case item.State == v1alpha1.ItemInProgress:
			status.Message = governance.Clip(fmt.Sprintf("item %d of %d: %s", i+1, len(status.Items), item.Message))
			return nil
		case item.State == v1alpha1.ItemFailed && v.plan.Spec.FailurePolicy != v1alpha1.FailurePolicyContinue:
			return v.fail(ctx, cmp.Or(v.reason, governance.ReasonItemFailed), fmt.Sprintf(
				"item %s failed: %s; the items after it are Pending; %s plans what is left, and a rollback undoes what is done", item.Name, item.Message, governance.AnewCommand(v.plan.Name)))
		}
	}
	return v.finish(ctx)
}

// unchanged makes sure before the first write of a run that every target is as it
// was reviewed, and nobody else has come to have fields that would be taken: the first
// item may reboot nodes, and must not for the sake of a plan that ends at the second.
// Each is judged again when its turn comes.
func (v *visit) unchanged(ctx context.Context, manifests map[manifest.Digest][]byte) (bool, error) {
	status := &v.plan.Status
	seen := v.followItems()
	if slices.ContainsFunc(status.Items, func(item v1alpha1.PlanItem) bool { return item.State != v1alpha1.ItemPending }) {
		return true, nil
	}
	if !seen {
		status.Message = "waiting to see the targets"
		return false, nil
	}
	for i := range status.Items {
		item := &status.Items[i]
		why, known := v.stale(*item)
		if known && why == "" {
			var err error
			if why, err = v.takesMore(ctx, *item, manifests); err != nil {
				return false, err
			}
		}
		if why == "" {
			continue // an object that cannot be watched is read when its turn comes
		}
		v.settle(item, v1alpha1.ItemFailed, why)
		return false, v.fail(ctx, governance.ReasonPlanStale, v.staleMessage(*item)+"; nothing was applied")
	}
	return true, nil
}

// unknownFreeze is when to ask again whether the cluster is frozen while that cannot be
// told: nobody tells when it can.
const unknownFreeze = 2 * time.Second

// frozen tells whether nothing may be written, and has status say so. Nothing is waited
// for meanwhile: as in a pause, that time does not count.
func (v *visit) frozen() bool {
	if v.Freezes == nil {
		return false
	}
	freeze, err := v.Freezes.Frozen()
	switch {
	case err != nil:
		v.plan.Status.Message = governance.Clip("waiting: " + err.Error())
		v.soon(unknownFreeze)
	case freeze != nil:
		v.reason, v.plan.Status.Message = governance.ReasonFrozen, governance.Clip(freeze.String()+"; nothing is written")
	default:
		return false
	}
	for i := range v.plan.Status.Items {
		if item := &v.plan.Status.Items[i]; item.State == v1alpha1.ItemInProgress {
			v.pause(item, true)
		}
	}
	return true
}

// withdrawn tells whether a run must not go on.
func (v *visit) withdrawn() (bool, string) {
	spec, status := v.plan.Spec, v.plan.Status
	switch {
	case spec.Action != v1alpha1.ActionApply || status.Approval == nil:
		return true, "the approval was withdrawn while the plan was executed; what is done stays, and what is left is planned anew"
	case status.InputsHash != governance.InputsHash(spec):
		return true, "spec was changed while the plan was executed; what is left is planned anew"
	case status.Approval.PlanHash != status.PlanHash || status.Approval.Run != status.Run:
		return true, "another plan was approved while this one was executed; what is left is planned anew"
	case spec.ApprovedPlanHash != "" && spec.ApprovedPlanHash != status.PlanHash:
		return true, "spec.approvedPlanHash was changed while the plan was executed; what is left is planned anew"
	default:
		return false, ""
	}
}

// start gives an item its turn. It is stored before anything is written: who reads
// an old status finds out, and two that execute meet here.
func (v *visit) start(ctx context.Context, item *v1alpha1.PlanItem) error {
	now := v.now()
	item.StartedAt = &now
	v.settle(item, v1alpha1.ItemInProgress, "applying")
	if err := v.save(ctx); err != nil {
		return err
	}
	// So that the run is known whatever happens next.
	return v.record(ctx, "")
}

// proceed applies an item, once, and waits for it.
func (v *visit) proceed(ctx context.Context, item *v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) error {
	// 1. Applied, by the engine, in the state that was reviewed.
	applied := true
	if item.Action != v1alpha1.ItemNone {
		var err error
		if applied, err = v.apply(ctx, item, manifests); err != nil {
			return err
		}
	} else if why, known := v.stale(*item); known && why != "" {
		// Nobody writes it, and what is waited for would never come.
		v.reason = governance.ReasonPlanStale
		v.settle(item, v1alpha1.ItemFailed, "stale: "+why)
	}
	// 2. Healthy.
	if applied && item.State == v1alpha1.ItemInProgress {
		if err := v.await(ctx, item, manifests); err != nil {
			return err
		}
	}
	// 3. In time.
	v.timeOut(item)
	return nil
}

// apply has the engine apply an item and says whether it is applied and, where its
// kind has a probe, available.
func (v *visit) apply(ctx context.Context, item *v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) (bool, error) {
	step := stage.Step{Ref: refOf(*item), Policy: stage.Policy{
		Own: stage.Shared, Expect: item.Fingerprint, Takes: mayTake(*item), Written: item.Applied, Delete: item.Action == v1alpha1.ItemDelete,
	}}
	report, err := v.reconcile(ctx, fmt.Sprintf("run/%d/%s", v.plan.Status.Run, item.Name), []stage.Step{step}, planwork.Bodies(manifests))
	if err != nil {
		return false, err
	}
	if entry, written := v.inventory.Entries[step.ID]; written && !entry.Intent() {
		v.written(item)
	}
	for _, phase := range report.Layers[0].Phases {
		if len(phase.Failures) > 0 {
			v.hindered(item, phase.Failures[0])
			return false, nil
		}
	}
	complete := report.Layers[0].Complete
	if complete {
		v.written(item)
	}
	return complete, nil
}

// written notes that the target of an item is written, and when that was first known.
func (v *visit) written(item *v1alpha1.PlanItem) {
	if now := v.now(); item.AppliedAt == nil {
		item.AppliedAt = &now
	}
	item.Applied = true
}

// mayTake are the fields that were reviewed to be taken.
func mayTake(item v1alpha1.PlanItem) []stage.Take {
	var takes []stage.Take
	for _, one := range item.Takes {
		takes = append(takes, stage.Take{Manager: one.Manager, Fields: one.Fields})
	}
	return takes
}

// hindered notes why an item is not applied.
func (v *visit) hindered(item *v1alpha1.PlanItem, failure rollout.Failure) {
	if failure.Reason == rollout.ReasonRejected {
		failure.Message = v.redacted(failure.ID, nil, failure.Message)
	}
	switch {
	case failure.Reason == rollout.ReasonStale:
		v.reason = governance.ReasonPlanStale
		v.settle(item, v1alpha1.ItemFailed, "stale: "+failure.Message)
	case failure.NeedsPerson:
		// A target with our annotation was written by this run, before a crash.
		if failure.Reason == rollout.ReasonDrifted {
			v.written(item)
		}
		v.settle(item, v1alpha1.ItemFailed, failure.Message)
	default:
		item.Message = governance.Clip(failure.Message)
	}
}

// reconcile has the engine look at targets: one layer, of one stage.
func (v *visit) reconcile(ctx context.Context, key string, steps []stage.Step, manifests rollout.Bodies) (rollout.Report, error) {
	stages, err := stage.Compile([]stage.Phase{{Name: "targets", Steps: steps}}, stage.Options{Probes: probe.Builtin()})
	if err != nil {
		return rollout.Report{}, err
	}
	if len(stages) != 1 {
		// Waves are for what belongs together; items are on their own.
		merged := stages[0]
		for _, other := range stages[1:] {
			merged.Steps, merged.Gates = append(merged.Steps, other.Steps...), append(merged.Gates, other.Gates...)
		}
		stages = []stage.Stage{merged}
	}
	// The engine deletes what is in its inventory and in no layer. A plan never
	// deletes but what it says, so the inventory has nothing else.
	inventory := rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}, Reached: v.inventory.Reached}
	for _, step := range steps {
		if entry, known := v.inventory.Entries[step.ID]; known {
			inventory.Entries[step.ID] = entry
		}
	}
	report, err := v.Engine.Reconcile(ctx, rollout.Work{
		Owner: string(v.plan.Spec.Profile), Bodies: manifests, Inventory: inventory,
		Layers: []rollout.Layer{{Key: key, Revision: 1, Stages: stages}},
		// Written targets are recognised by their annotations: nothing need be stored.
		Save: func(_ context.Context, inventory rollout.Inventory) error { v.inventory = inventory; return nil },
	})
	if err != nil {
		return report, err
	}
	v.soon(report.RequeueAfter)
	for _, event := range report.Events {
		v.event(v.plan, event.Warning, event.Reason, event.Message)
	}
	return report, nil
}

// fail ends a run.
func (v *visit) fail(ctx context.Context, reason, message string) error {
	if err := v.endRun(ctx, v1alpha1.PhaseFailed); err != nil {
		return err
	}
	return v.move(governance.EventFailed, reason, message)
}

// finish ends a run of which all items had their turn.
func (v *visit) finish(ctx context.Context) error {
	event, outcome, message := governance.EventDone, v1alpha1.PhaseCompleted, "all items are applied and healthy"
	if run := v.plan.Spec.RestoreRun; run != 0 {
		message = governance.Restored(run) + "; computing the plan anew leads back to what its profile says"
	}
	var failed []string
	for _, item := range v.plan.Status.Items {
		if item.State == v1alpha1.ItemFailed {
			failed = append(failed, item.Name+": "+item.Message)
		}
	}
	if len(failed) > 0 {
		event, outcome = governance.EventDoneWithErrors, v1alpha1.PhaseCompletedWithErrors
		message = "items failed: " + strings.Join(failed, "; ") + "; " + governance.AnewCommand(v.plan.Name) + " plans what is left"
	}
	if err := v.endRun(ctx, outcome); err != nil {
		return err
	}
	return v.move(event, "", message)
}
