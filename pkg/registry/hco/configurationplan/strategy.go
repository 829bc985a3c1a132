package configurationplan

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/hco/validation"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
	"github.com/penstock-project/penstock/pkg/window"
)

// strategy validates plans and sets server-side fields: only the server records approvers.
type strategy struct {
	shared.Cluster
	clock    clock.PassiveClock
	profiles []hco.ProfileName
	// definitions returns user-defined profiles.
	definitions func(ctx context.Context, name string) (*cel.Profile, error)
}

var (
	_ rest.RESTCreateStrategy  = &strategy{}
	_ rest.RESTUpdateStrategy  = &strategy{}
	_ rest.RESTDeleteStrategy  = &strategy{}
	_ rest.ResetFieldsStrategy = &strategy{}
)

// GetResetFields returns the fields that writes of the main resource cannot set.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion, fieldpath.MakePathOrDie("status"))
}

// PrepareForCreate records the approval of a plan that is created with Apply.
func (s *strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	plan := obj.(*hco.ConfigurationPlan)
	plan.Generation = 1
	copied := copyOf(plan) != ""
	plan.Status = hco.ConfigurationPlanStatus{
		Phase:      hco.PhasePending,
		Conditions: []metav1.Condition{objectmeta.Unobserved(v1alpha1.ConditionReady, plan.CreationTimestamp)},
	}
	s.judge(ctx, plan, governance.Change{
		Created: true, Copied: copied, IsApply: plan.Spec.Action == hco.ActionApply, Hash: plan.Spec.ApprovedPlanHash, NewHash: true,
	}, true)
}

// PrepareForUpdate keeps status except the approval. Package governance decides how a write of spec
// changes the approval.
func (s *strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
	plan.Status = *stored.Status.DeepCopy()
	endRestore(plan, stored)
	if stored.Spec.Action == hco.ActionApply && plan.Spec.Action != hco.ActionApply && plan.Spec.ApprovedPlanHash == stored.Spec.ApprovedPlanHash {
		plan.Spec.ApprovedPlanHash = "" // the field was the approval, which this write withdraws
	}
	if apiequality.Semantic.DeepEqual(plan.Spec, stored.Spec) {
		return
	}
	plan.Generation = stored.Generation + 1
	s.judge(ctx, plan, changeOf(ctx, plan, stored), isRequest(plan, stored))
}

// Validate returns the errors in a new plan.
func (s *strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	plan := obj.(*hco.ConfigurationPlan)
	return objectmeta.Bounded(append(validation.ValidatePlan(plan, s.profiles...), s.validateValues(ctx, plan)...))
}

// ValidateUpdate returns an error for each forbidden change.
func (s *strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
	errs := validation.ValidatePlanUpdate(plan, stored, s.profiles...)
	if !apiequality.Semantic.DeepEqual(plan.Spec.Options, stored.Spec.Options) {
		errs = append(errs, s.validateValues(ctx, plan)...)
	}
	if isRequest(plan, stored) {
		if _, err := governance.Requests(stored.Status.RequestedBy, requester(ctx)); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), err.Error()))
		}
	}
	return objectmeta.Bounded(errs)
}

// WarningsOnCreate warns that a create with Apply approves nothing, or that a plan can never be
// executed.
func (s *strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	plan := obj.(*hco.ConfigurationPlan)
	warnings := append(s.neverBegins(plan), s.unknownProfile(ctx, plan)...)
	warnings = append(warnings, doubts(plan)...)
	switch found := copyOf(plan); {
	case plan.Spec.Action != hco.ActionApply:
	case excluded(ctx, plan):
		warnings = append(warnings, notAnApprover)
	case found != "" && plan.Spec.ApprovedPlanHash == "":
		warnings = append(warnings, "spec.action: Apply approves nothing: "+found+"; review and approve the plan that is computed now")
	}
	return warnings
}

// notAnApprover is the warning for a requester of a plan who sets Apply.
const notAnApprover = "spec.action: Apply approves nothing: spec.approvals requires people other than those in status.requestedBy; they approve the plan through the subresource approve"

// WarningsOnUpdate warns that a write of Apply approves nothing while another plan is in progress.
func (s *strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
	var warnings []string
	if !apiequality.Semantic.DeepEqual(plan.Spec, stored.Spec) {
		warnings = append(s.neverBegins(plan), restoreWarnings(plan, stored)...)
	}
	if !apiequality.Semantic.DeepEqual(plan.Spec.Window, stored.Spec.Window) {
		warnings = append(warnings, doubts(plan)...)
	}
	switch {
	case plan.Spec.Action != hco.ActionApply || plan.Status.Approval != nil || stored.Generation == plan.Generation:
	case excluded(ctx, plan):
		warnings = append(warnings, notAnApprover)
	default:
		warnings = append(warnings, "spec.action: Apply approves nothing now: a new plan is being computed, or spec.approvedPlanHash names another one; review and approve the plan that then waits")
	}
	return warnings
}

// doubts warns of a window that may open on unintended days.
func doubts(plan *hco.ConfigurationPlan) []string {
	if plan.Spec.Window == nil {
		return nil
	}
	if doubt := window.Doubt(plan.Spec.Window.Schedule); doubt != "" {
		return []string{"spec.window: " + doubt}
	}
	return nil
}

// neverBegins warns of a plan that expires before it can begin.
func (s *strategy) neverBegins(plan *hco.ConfigurationPlan) []string {
	spec, err := externalSpec(&plan.Spec)
	if err != nil || spec.Expires == nil {
		return nil
	}
	turn, err := governance.TurnAt(spec, s.clock.Now())
	switch {
	case err != nil:
		return nil // validation reports it
	case turn.Expired:
		return []string{"spec.expires has passed: nothing is executed until you set a later time"}
	case !turn.Open && !spec.Expires.After(turn.Window.OpensAt.Time):
		return []string{"spec.expires comes before the window: " + turn.Begins(spec)}
	}
	return nil
}

// statusStrategy is the strategy of the subresource status. Only status changes. Admission lets
// only this process write it.
type statusStrategy struct{ *strategy }

var (
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// GetResetFields returns the fields that writes of status cannot set.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

// PrepareForUpdate restores everything except status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
	plan.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(&plan.ObjectMeta, &stored.ObjectMeta)
}

// ValidateUpdate returns the errors in a status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePlanStatusUpdate(obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan))
}

// WarningsOnUpdate returns no warnings.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// actStrategy is the strategy of the subresources that act on a plan. They set spec and status
// themselves.
type actStrategy struct{ *strategy }

var _ rest.RESTUpdateStrategy = actStrategy{}

// PrepareForUpdate increments the generation.
func (actStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
	if !apiequality.Semantic.DeepEqual(plan.Spec, stored.Spec) {
		plan.Generation = stored.Generation + 1
	}
}

// WarningsOnUpdate returns no warnings.
func (actStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
