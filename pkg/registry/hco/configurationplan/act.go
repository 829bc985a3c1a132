package configurationplan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/hco/validation"
	"github.com/penstock-project/penstock/pkg/governance"
)

// act changes a stored plan in one write. The write is repeated if another writer changed the plan
// meanwhile.
func act(ctx context.Context, store *genericregistry.Store, name string, dryRun []string, change func(*hco.ConfigurationPlan) error) (*hco.ConfigurationPlan, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		plan := old.DeepCopyObject().(*hco.ConfigurationPlan)
		return plan, change(plan)
	})
	out, _, err := store.Update(ctx, name, info, nil, nil, false, &metav1.UpdateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return out.(*hco.ConfigurationPlan), nil
}

// taken describes targets that a plan must not change but would.
func taken(plan *hco.ConfigurationPlan) string {
	external, err := versioned(plan)
	if err != nil {
		return err.Error() // the conversion cannot fail
	}
	return governance.Conflict(external.Spec, external.Status.Items)
}

// versioned returns a plan as clients see it.
func versioned(plan *hco.ConfigurationPlan) (*v1alpha1.ConfigurationPlan, error) {
	out := &v1alpha1.ConfigurationPlan{}
	return out, v1alpha1.Convert_hco_ConfigurationPlan_To_v1alpha1_ConfigurationPlan(plan.DeepCopy(), out, nil)
}

// admit runs admission on a request to a subresource.
func admit(ctx context.Context, validate rest.ValidateObjectFunc, obj runtime.Object) error {
	if validate == nil {
		return nil
	}
	return validate(ctx, obj.DeepCopyObject())
}

func conflict(name, format string, args ...any) error {
	return apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf(format, args...))
}

// ApproveREST serves the subresource approve: a POST approves exactly the plan that the user has
// read.
type ApproveREST struct {
	store     *genericregistry.Store
	clock     clock.PassiveClock
	approvers Approvers
}

var _ rest.NamedCreater = &ApproveREST{}

// New returns an empty request.
func (*ApproveREST) New() runtime.Object { return &hco.PlanApprovalRequest{} }

// Destroy does nothing: the main resource owns the store.
func (*ApproveREST) Destroy() {}

// Create approves a plan.
func (r *ApproveREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked := obj.(*hco.PlanApprovalRequest)
	asked.Status = nil
	if errs := validation.ValidateApprovalRequest(asked); len(errs) > 0 {
		return nil, apierrors.NewInvalid(hco.Kind("PlanApprovalRequest"), name, errs)
	}
	asked.Name = name // for admission plugins
	if err := admit(ctx, validate, asked); err != nil {
		return nil, err
	}
	plan, err := act(ctx, r.store, name, options.DryRun, func(plan *hco.ConfigurationPlan) error {
		status := plan.Status
		switch {
		case status.PlanHash == "" || status.Phase != hco.PhaseReviewRequired:
			return conflict(name, "it is %s: no plan waits for an approval", status.Phase)
		case status.PlanHash != asked.Spec.PlanHash:
			return conflict(name, "the plan has hash %s now, not %s: review it again", status.PlanHash, asked.Spec.PlanHash)
		case status.InputsHash != inputs(plan):
			return conflict(name, "spec has changed since the plan was computed: a new plan is being computed")
		}
		if why := taken(plan); why != "" {
			return conflict(name, "%s", why)
		}
		if reasonOf(plan) == governance.ReasonConflict {
			return conflict(name, "%s", plan.Status.Message) // a conflict with another plan, found by the controller
		}
		if err := another(ctx, plan); err != nil {
			return err
		}
		if err := r.mayDo(ctx, plan); err != nil {
			return err
		}
		plan.Spec.Action = hco.ActionApply
		join(plan, stamp(ctx, r.clock, asked.Spec.PlanHash, asked.Spec.Comment))
		pinApproved(plan)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &hco.PlanApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: asked.Spec, Status: plan.Status.Approval}, nil
}

// another refuses an approval by a requester or an earlier approver, if the plan needs more than
// one approval.
func another(ctx context.Context, plan *hco.ConfigurationPlan) error {
	who, given := requester(ctx), external(plan.Status.Approval)
	switch {
	case needed(plan) == 1:
	case excluded(ctx, plan):
		return apierrors.NewForbidden(v1alpha1.Resource(resource), plan.Name,
			fmt.Errorf("spec.approvals is %d: %s created the plan or changed its spec, so other users must approve it", needed(plan), who))
	case given == nil || given.PlanHash != plan.Status.PlanHash || given.Run != 0:
	case slices.Contains(governance.Approvers(given), who):
		return conflict(plan.Name, "%s has already approved it (%d of %d approvals): another person must approve it", who, len(governance.Approvers(given)), needed(plan))
	}
	return nil
}

// mayDo refuses an approval by a user without the rights that the plan uses, because its execution
// would fail.
func (r *ApproveREST) mayDo(ctx context.Context, plan *hco.ConfigurationPlan) error {
	external, err := versioned(plan)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	lacks, err := r.approvers.Lacks(ctx, external)
	if err != nil {
		return err
	}
	if len(lacks) > 0 {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), plan.Name,
			fmt.Errorf("to approve a plan, you need the rights to all that it does: you cannot %s", strings.Join(lacks, ", ")))
	}
	return nil
}

// RetryREST serves the subresource retry: a POST computes the plan again.
type RetryREST struct{ store *genericregistry.Store }

var _ rest.NamedCreater = &RetryREST{}

// New returns an empty request.
func (*RetryREST) New() runtime.Object { return &hco.PlanRetryRequest{} }

// Destroy does nothing: the main resource owns the store.
func (*RetryREST) Destroy() {}

// Create requests that the plan is computed again.
func (r *RetryREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked := obj.(*hco.PlanRetryRequest)
	asked.Name = name
	if err := admit(ctx, validate, asked); err != nil {
		return nil, err
	}
	_, err := act(ctx, r.store, name, options.DryRun, func(plan *hco.ConfigurationPlan) error {
		next, err := governance.Next(v1alpha1.Phase(plan.Status.Phase), governance.EventRetry)
		switch {
		case err != nil && plan.Status.Phase == hco.PhaseInProgress:
			return conflict(name, "it is being executed: set spec.action to DryRun to stop it first")
		case err != nil:
			return conflict(name, "spec.action is Ignore")
		}
		if isRestored(plan) {
			// A restore happens once: the next plan is computed from the profile.
			if err := recordRequest(ctx, plan); err != nil {
				return err
			}
			plan.Spec.RestoreRun, plan.Spec.Action, plan.Spec.ApprovedPlanHash = 0, hco.ActionDryRun, ""
			plan.Status.Approval = nil
		}
		plan.Status.Phase, plan.Status.Message = hco.Phase(next), "to be computed again"
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &hco.PlanRetryRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

// RollbackREST serves the subresource rollback: a POST requests a plan that restores the state
// before a run. The plan must be reviewed.
type RollbackREST struct {
	store *genericregistry.Store
	runs  Runs
	clock clock.PassiveClock
}

var _ rest.NamedCreater = &RollbackREST{}

// New returns an empty request.
func (*RollbackREST) New() runtime.Object { return &hco.PlanRollbackRequest{} }

// Destroy does nothing: the main resource owns the store.
func (*RollbackREST) Destroy() {}

// Create requests the plan. It approves nothing.
func (r *RollbackREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked := obj.(*hco.PlanRollbackRequest)
	asked.Name = name
	if err := admit(ctx, validate, asked); err != nil {
		return nil, err
	}
	rows, err := r.runs.List(ctx, name)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	_, err = act(ctx, r.store, name, options.DryRun, func(plan *hco.ConfigurationPlan) error {
		run := asked.Spec.Run
		for _, row := range rows {
			if row.Plan != string(plan.UID) || run != 0 && row.Number != run {
				continue
			}
			if plan.Status.Phase == hco.PhaseInProgress {
				return conflict(name, "it is being executed: set spec.action to DryRun to stop it first")
			}
			var executed v1alpha1.PlanRun
			if err := json.Unmarshal(row.Body, &executed); err != nil {
				return apierrors.NewInternalError(fmt.Errorf("reading run %d of %s: %w", row.Number, name, err))
			}
			if !slices.ContainsFunc(executed.Items, governance.Restorable) {
				return conflict(name, "run %d changed nothing that could be restored; to undo another run of its history, name it in spec.run", row.Number)
			}
			asked.Spec.Run = row.Number
			if err := recordRequest(ctx, plan); err != nil {
				return err
			}
			if until := plan.Spec.Expires; until != nil && !until.After(r.clock.Now()) {
				plan.Spec.Expires = nil // it belonged to the change that is undone
			}
			plan.Spec.RestoreRun, plan.Spec.Action, plan.Spec.ApprovedPlanHash = row.Number, hco.ActionDryRun, ""
			plan.Status.Approval = nil
			return nil
		}
		if run == 0 {
			return conflict(name, "it was never executed: there is nothing to undo")
		}
		return conflict(name, "its history has no run %d", run)
	})
	if err != nil {
		return nil, err
	}
	return &hco.PlanRollbackRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: asked.Spec}, nil
}

var errNoPlan = errors.New("no plan has been computed yet")
