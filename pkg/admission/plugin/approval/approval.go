// Package approval is the admission plugin that guards plans. It checks who may approve a plan, and
// who may take a profile from another plan. It lets only this process write the status of a plan.
package approval

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/plugin"
	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/governance"
)

// PluginName is the name for --disable-admission-plugins.
const PluginName = "PlanApproval"

const (
	resource = "configurationplans"
	// VerbApprove is the right to approve a plan for execution.
	VerbApprove = "approve"
	// VerbOverride is the right to take a profile from another plan.
	VerbOverride = "override"
)

// Plugin is the admission plugin.
type Plugin struct{ *plugin.Authorized }

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{plugin.NewAuthorized(PluginName, admission.Create, admission.Update)}
}

// Validate admits writes of plans:
//
//  1. this process can write everything,
//  2. other writers cannot write status,
//  3. a write that approves or overrides needs the verb.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != hco.GroupName || a.GetResource().Resource != resource || request.IsInternal(ctx, a.GetUserInfo()) {
		return nil
	}
	switch a.GetSubresource() {
	case "":
		return p.validatePlan(ctx, a)
	case "status":
		return admission.NewForbidden(a, errors.New("status of a plan is the record of what was approved and done: nobody but Penstock writes it"))
	case "approve":
		return p.need(ctx, a, VerbApprove, "approving a plan")
	default:
		return nil
	}
}

// validatePlan checks the rights for a write of a plan.
func (p *Plugin) validatePlan(ctx context.Context, a admission.Attributes) error {
	plan, ok := a.GetObject().(*hco.ConfigurationPlan)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("judging a plan: it is a %T", a.GetObject()))
	}
	old, _ := a.GetOldObject().(*hco.ConfigurationPlan)
	if old == nil {
		old = &hco.ConfigurationPlan{}
	}
	changed := !apiequality.Semantic.DeepEqual(plan.Spec, old.Spec)
	if governance.NeedsApprove(old.Spec.Action == hco.ActionApply, plan.Spec.Action == hco.ActionApply, changed) {
		if err := p.need(ctx, a, VerbApprove, "setting spec.action to Apply, or changing spec while it is Apply,"); err != nil {
			return err
		}
	}
	if holder := plan.Annotations[v1alpha1.OverrideAnnotation]; holder != "" && holder != old.Annotations[v1alpha1.OverrideAnnotation] {
		return p.need(ctx, a, VerbOverride, "taking a profile from another plan")
	}
	return nil
}

// need returns an error unless the requester has a verb on the plan.
func (p *Plugin) need(ctx context.Context, a admission.Attributes, verb, what string) error {
	name := a.GetName()
	if object, err := meta.Accessor(a.GetObject()); name == "" && err == nil {
		name = object.GetName() // of a create
	}
	allowed, err := p.Has(ctx, a, authz.On(v1alpha1.SchemeGroupVersion.WithResource(resource), verb, "", name))
	if allowed || err != nil {
		return err
	}
	return admission.NewForbidden(a, fmt.Errorf("%s needs the verb %s on %s.%s", what, verb, resource, hco.GroupName))
}
