package approval_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/admission/plugin/approval"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// rights are the verbs that a user has on plan "rebalance".
type rights []string

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, verb := range r {
		if a.GetVerb() == verb && a.GetName() == "rebalance" && a.GetResource() == "configurationplans" && a.GetAPIGroup() == "hco.kubevirt.io" {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func plan(action hco.Action, change ...func(*hco.ConfigurationPlan)) *hco.ConfigurationPlan {
	p := &hco.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "rebalance"}, Spec: hco.ConfigurationPlanSpec{Action: action}}
	for _, f := range change {
		f(p)
	}
	return p
}

func override(p *hco.ConfigurationPlan) {
	p.Annotations = map[string]string{v1alpha1.OverrideAnnotation: "other"}
}

func policy(p *hco.ConfigurationPlan) { p.Spec.FailurePolicy = hco.FailurePolicyContinue }

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		object, old runtime.Object
		subresource string
		has         rights
		refused     string
	}{
		"dry run":             {"asking is free", plan(hco.ActionDryRun), nil, "", nil, ""},
		"create to apply":     {"it approves the first plan", plan(hco.ActionApply), nil, "", nil, "verb approve"},
		"create, may":         {"", plan(hco.ActionApply), nil, "", rights{"approve"}, ""},
		"change to apply":     {"", plan(hco.ActionApply), plan(hco.ActionDryRun), "", nil, "verb approve"},
		"change while apply":  {"", plan(hco.ActionApply, policy), plan(hco.ActionApply), "", nil, "verb approve"},
		"same spec":           {"labels approve nothing", plan(hco.ActionApply), plan(hco.ActionApply), "", nil, ""},
		"end of apply":        {"stopping is free", plan(hco.ActionDryRun), plan(hco.ActionApply), "", nil, ""},
		"ignore":              {"", plan(hco.ActionIgnore), plan(hco.ActionApply), "", nil, ""},
		"approve":             {"", &hco.PlanApprovalRequest{}, nil, "approve", nil, "verb approve"},
		"approve, may":        {"", &hco.PlanApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: "rebalance"}}, nil, "approve", rights{"approve"}, ""},
		"override":            {"", plan(hco.ActionDryRun, override), nil, "", rights{"approve"}, "verb override"},
		"override, may":       {"", plan(hco.ActionDryRun, override), nil, "", rights{"override"}, ""},
		"override, as before": {"", plan(hco.ActionDryRun, override), plan(hco.ActionDryRun, override), "", nil, ""},
		"status":              {"nobody forges the record", plan(hco.ActionDryRun), plan(hco.ActionDryRun), "status", rights{"approve", "override", "update"}, "nobody but Penstock"},
		"retry":               {"the subresource has a right of its own", &hco.PlanRetryRequest{}, nil, "retry", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := approval.New()
			p.SetAuthorizer(c.has)
			if err := p.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}
			operation := admission.Create
			if c.old != nil {
				operation = admission.Update
			}
			attributes := admission.NewAttributesRecord(c.object, c.old, hco.SchemeGroupVersion.WithKind("ConfigurationPlan"), "", "",
				v1alpha1.SchemeGroupVersion.WithResource("configurationplans"), c.subresource, operation, nil, false, &user.DefaultInfo{Name: "alice"})
			err := p.Validate(t.Context(), attributes, nil)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", c.reason, err, c.refused)
			}
		})
	}
	// A user can have the name of this process, but gets no rights by it.
	p := approval.New()
	p.SetAuthorizer(rights{})
	attributes := admission.NewAttributesRecord(plan(hco.ActionDryRun), plan(hco.ActionDryRun), hco.SchemeGroupVersion.WithKind("ConfigurationPlan"), "", "rebalance",
		v1alpha1.SchemeGroupVersion.WithResource("configurationplans"), "status", admission.Update, nil, false, &user.DefaultInfo{Name: user.APIServerUser})
	if err := p.Validate(t.Context(), attributes, nil); err == nil {
		t.Error("somebody with the name of this process wrote status")
	}
}
