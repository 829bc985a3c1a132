package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/store/run"
)

// record writes the current run into the history, which outlives the plan. An outcome ends the run.
func (s *scope) record(ctx context.Context, outcome v1alpha1.Phase) error {
	status := s.plan.Status
	if status.Run == 0 || status.Approval == nil && outcome == "" {
		return nil
	}
	row, err := s.runOf(ctx, status.Run)
	if err != nil {
		return err
	}
	if row == nil {
		row = &v1alpha1.PlanRun{
			Plan: string(s.plan.UID), Run: status.Run, Profile: s.plan.Spec.Profile, PlanHash: status.PlanHash,
			Manifests: status.Manifests, Captured: status.Captured, RestoreRun: s.plan.Spec.RestoreRun, StartedAt: s.now(),
		}
		if status.Approval != nil {
			row.Approval = *status.Approval
		}
	}
	if outcome != "" && row.EndedAt == nil {
		now := s.now()
		row.EndedAt, row.Outcome = &now, outcome
	}
	row.Items = nil
	for _, item := range status.Items {
		row.Items = append(row.Items, v1alpha1.PlanRunItem{
			Name: item.Name, TargetRef: item.TargetRef, Action: item.Action, Digest: item.Digest, State: item.State,
			Message: item.Message, StartedAt: item.StartedAt, Applied: ptr.To(applied(item)), EndedAt: item.LastTransitionTime,
		})
	}
	return s.writeRun(ctx, s.plan.Name, row)
}

// writeRun stores a run of a plan, and replaces the run with the same number.
func (r *reconciler) writeRun(ctx context.Context, name string, did *v1alpha1.PlanRun) error {
	body, err := json.Marshal(did)
	if err == nil {
		err = r.Runs.Put(ctx, name, run.Row{Plan: did.Plan, Number: did.Run, Body: body}, packsOf(did)...)
	}
	if err != nil {
		return fmt.Errorf("writing run %d of plan %s: %w", did.Run, name, err)
	}
	return nil
}

func packsOf(did *v1alpha1.PlanRun) []string {
	return slices.DeleteFunc([]string{did.Manifests, did.Captured}, func(root string) bool { return root == "" })
}

// readRun decodes the run of a plan from a row.
func readRun(name string, row run.Row) (*v1alpha1.PlanRun, error) {
	did := &v1alpha1.PlanRun{}
	if err := json.Unmarshal(row.Body, did); err != nil {
		return nil, fmt.Errorf("reading run %d of plan %s: %w", row.Number, name, err)
	}
	return did, nil
}

func (s *scope) runOf(ctx context.Context, number int64) (*v1alpha1.PlanRun, error) {
	rows, err := s.runs(ctx)
	for i := range rows {
		if rows[i].Run == number {
			return &rows[i], nil
		}
	}
	return nil, err
}

func (s *scope) runs(ctx context.Context) ([]v1alpha1.PlanRun, error) {
	rows, err := s.Runs.List(ctx, s.plan.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the runs of plan %s: %w", s.plan.Name, err)
	}
	var runs []v1alpha1.PlanRun
	for _, row := range rows {
		if row.Plan != string(s.plan.UID) {
			continue
		}
		did, err := readRun(s.plan.Name, row)
		if err != nil {
			return nil, err
		}
		runs = append(runs, *did)
	}
	return runs, nil
}

// tidy ends the runs of deleted plans with the same name. Their deletion may have been missed, if
// this plan was created before the next pass.
func (s *scope) tidy(ctx context.Context) error {
	if s.tidied {
		return nil
	}
	err := s.abandon(ctx, s.plan.Name, string(s.plan.UID))
	s.tidied = err == nil
	return err
}

// abandon ends the runs of deleted plans with a name, except the plan with the uid but. Applied
// content stays, as for an ignored plan.
func (r *reconciler) abandon(ctx context.Context, name, but string) error {
	rows, err := r.Runs.List(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the runs of plan %s: %w", name, err)
	}
	for _, row := range rows {
		going, err := readRun(name, row)
		if err != nil {
			return err
		}
		if going.EndedAt != nil || going.Plan == but {
			continue
		}
		now := r.now()
		going.EndedAt, going.Outcome = &now, v1alpha1.PhaseIgnored
		for i := range going.Items {
			if item := &going.Items[i]; item.State == v1alpha1.ItemInProgress {
				item.State, item.Message, item.EndedAt = v1alpha1.ItemFailed, governance.Clip("interrupted, the plan was deleted: "+item.Message), &now
			}
		}
		if err := r.writeRun(ctx, name, going); err != nil {
			return err
		}
	}
	return nil
}

// endRun records the outcome of a run. Its current item is no longer in progress: written content
// stays, and Penstock no longer waits for it.
func (s *scope) endRun(ctx context.Context, outcome v1alpha1.Phase) error {
	for i := range s.plan.Status.Items {
		if item := &s.plan.Status.Items[i]; item.State == v1alpha1.ItemInProgress {
			item.Applied = item.Applied || s.mayBeWritten(*item)
			s.settle(item, v1alpha1.ItemFailed, "interrupted: "+item.Message)
		}
	}
	return s.record(ctx, outcome)
}

// applied reports whether a run has written the target of an item. Older versions did not record
// this; then a completed item counts as written.
func applied(item v1alpha1.PlanItem) bool {
	return item.Applied || item.State == v1alpha1.ItemCompleted && item.Action != v1alpha1.ItemNone
}

// mayBeWritten reports whether the target of an interrupted item may have been written. A process
// can die between the write and its record. An unknown item counts as written: reviewers see all
// that a rollback restores, but not its omissions.
func (s *scope) mayBeWritten(item v1alpha1.PlanItem) bool {
	if item.Action == v1alpha1.ItemNone {
		return false
	}
	live, presence := watchedTarget(s.Engine.Observer, refOf(item).ID)
	switch presence {
	case observe.Unknown:
		return true
	case observe.Absent:
		return item.Action == v1alpha1.ItemDelete
	default:
		return live.GetAnnotations()[v1alpha1.AppliedHashAnnotation] == item.Digest
	}
}
