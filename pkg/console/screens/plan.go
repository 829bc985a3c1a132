package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
)

// Plan is one plan.
type Plan struct {
	Name string  `json:"name"`
	Row  PlanRow `json:"row"`
	// UID identifies the plan on the screen. Writes include it.
	UID    string        `json:"uid"`
	Advice advice.Advice `json:"advice"`
	// Frozen names the user who froze the cluster, and the reason; empty when it is not frozen.
	Frozen string                           `json:"frozen,omitempty"`
	Spec   v1alpha1.ConfigurationPlanSpec   `json:"spec"`
	Status v1alpha1.ConfigurationPlanStatus `json:"status"`
	// Given is the number of users who have approved the plan with this hash, out of Wanted.
	Given  int `json:"given"`
	Wanted int `json:"wanted"`
}

// ApproveRequest approves only the plan that was on the screen.
type ApproveRequest struct {
	PlanHash string `json:"planHash"`
	Comment  string `json:"comment,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
}

// PlanRequest is an action on the plan that was on the screen.
type PlanRequest struct {
	UID string `json:"uid"`
}

// UndoRequest requests a plan that restores the state before a run: 0 is the last run.
type UndoRequest struct {
	Run int64 `json:"run,omitempty"`
}

func (a *API) watchPlan(ctx context.Context, r *http.Request, send func(Message)) error {
	selected := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.PathValue("name")).String()}
	return one(ctx, follow.Plans(a.penstock, selected), send, func(all []*v1alpha1.ConfigurationPlan) Message {
		if len(all) == 0 {
			return Message{Kind: "plan"}
		}
		return Message{Kind: "plan", Plan: planOf(all[0])}
	})
}

func planOf(plan *v1alpha1.ConfigurationPlan) *Plan {
	out := &Plan{
		Name: plan.Name, Row: planRow(plan), UID: string(plan.UID),
		Advice: advice.Plan(plan), Spec: plan.Spec, Status: plan.Status, Wanted: max(1, int(plan.Spec.Approvals)),
	}
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == reasonFrozen {
		out.Frozen = ready.Message
	}
	if approval := plan.Status.Approval; approval != nil && approval.PlanHash == plan.Status.PlanHash && approval.PlanHash != "" {
		out.Given = 1 + len(approval.Others)
	}
	return out
}

func (a *API) planDiff(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.HcoV1alpha1().ConfigurationPlans().GetDiff(ctx, r.PathValue("name"), metav1.GetOptions{})
}

func (a *API) planHistory(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.HcoV1alpha1().ConfigurationPlans().GetHistory(ctx, r.PathValue("name"), metav1.GetOptions{})
}

func (a *API) approve(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[ApproveRequest](r)
	if err != nil {
		return nil, err
	}
	if asked.PlanHash == "" {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "planHash is required: it says which plan was on the screen"}
	}
	request := &v1alpha1.PlanApprovalRequest{Spec: v1alpha1.PlanApprovalRequestSpec{PlanHash: asked.PlanHash, Comment: asked.Comment}}
	return a.penstock.HcoV1alpha1().ConfigurationPlans().Approve(ctx, r.PathValue("name"), request, metav1.CreateOptions{DryRun: dryRun(asked.DryRun)})
}

func (a *API) compute(ctx context.Context, r *http.Request) (any, error) {
	if _, err := read[struct{}](r); err != nil {
		return nil, err
	}
	if _, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Retry(ctx, r.PathValue("name"), &v1alpha1.PlanRetryRequest{}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return Done{Name: r.PathValue("name")}, nil
}

func (a *API) stop(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[PlanRequest](r)
	if err != nil {
		return nil, err
	}
	if asked.UID == "" {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "uid is required: it says which plan was on the screen"}
	}
	// The patch has no resourceVersion: a run changes status all the time, and a stop applies to
	// any progress.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": asked.UID}, "spec": map[string]any{"action": v1alpha1.ActionDryRun}})
	if err != nil {
		return nil, fmt.Errorf("encoding the change: %w", err)
	}
	if _, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Patch(ctx, r.PathValue("name"), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	return Done{Name: r.PathValue("name")}, nil
}

// undo requests a plan that restores the earlier state. The plan waits for an approval.
func (a *API) undo(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[UndoRequest](r)
	if err != nil {
		return nil, err
	}
	request := &v1alpha1.PlanRollbackRequest{Spec: v1alpha1.PlanRollbackRequestSpec{Run: asked.Run}}
	if _, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Rollback(ctx, r.PathValue("name"), request, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return Done{Name: r.PathValue("name")}, nil
}
