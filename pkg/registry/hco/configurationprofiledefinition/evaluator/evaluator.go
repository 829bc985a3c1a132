// Package evaluator computes a plan of a definition for the calling user. It reads facts with the
// identity of the definition, and shows them only to callers who may read all of them. It shows
// targets and their diffs only to callers who may get and patch them.
package evaluator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofiledefinition"
)

// Differ computes the effect of an item. *livediff.Differ implements it.
type Differ interface {
	Item(ctx context.Context, owner v1alpha1.ProfileName, item *profile.Item, facts profile.Facts) (v1alpha1.PlanDiffItem, bool, error)
}

// Evaluator implements configurationprofiledefinition.Evaluator. It stores nothing.
type Evaluator struct {
	Authorizer authorizer.UnconditionalAuthorizer
	Differ     Differ
	// ClientOf returns a client with the identity of a definition.
	ClientOf func(name string) (dynamic.Interface, error)
}

var _ configurationprofiledefinition.Evaluator = &Evaluator{}

// Evaluate computes a plan:
//
//  1. Check that the caller may read all facts, since the result may show them.
//  2. Set defaults of options.
//  3. Read the facts, and find missing ones.
//  4. Compute the items with their diffs.
func (e *Evaluator) Evaluate(ctx context.Context, definition *hco.ConfigurationProfileDefinition, given *hco.JSONObject) (*hco.ProfileEvaluationStatus, error) {
	spec, err := configurationprofiledefinition.External(&definition.Spec)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	made, err := cel.New(definition.Name, spec)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := e.mayRead(ctx, definition.Name, spec); err != nil {
		return nil, err
	}
	answer := &hco.ProfileEvaluationStatus{Digest: made.Digest()}
	var values *v1alpha1.JSONObject
	if given != nil {
		values = &v1alpha1.JSONObject{Raw: given.Raw}
	}
	options, errs := made.Options(values, field.NewPath("spec", "options"))
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(hco.Kind("ProfileEvaluation"), definition.Name, errs)
	}
	if answer.Options, err = jsonObject(options); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !configurationprofiledefinition.Granted(definition) {
		return nil, apierrors.NewServiceUnavailable("the ServiceAccount of the definition does not yet have the rights that the definition declares: kubectl get configprofiledef " + definition.Name + " -o yaml says why")
	}
	facts, err := e.facts(ctx, made)
	if err != nil {
		return nil, err
	}
	if err := profile.Missing(made, facts); err != nil {
		answer.Missing = err.Error()
		return answer, nil
	}
	items, err := made.Items(facts, &v1alpha1.PlanOptions{Values: values})
	var missing *profile.MissingError
	switch {
	case errors.As(err, &missing):
		answer.Missing = missing.Message
		return answer, nil
	case err != nil:
		return nil, apierrors.NewInvalid(hco.Kind("ProfileEvaluation"), definition.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "options"), field.OmitValueType{}, err.Error())})
	}
	answer.ImpactSeverity = hco.ImpactNone
	for _, item := range items {
		shown, err := e.item(ctx, made.Name(), item, facts)
		if err != nil {
			return nil, err
		}
		answer.ImpactSeverity = hco.ImpactSeverity(governance.Worse(v1alpha1.ImpactSeverity(answer.ImpactSeverity), v1alpha1.ImpactSeverity(shown.ImpactSeverity)))
		answer.Items = append(answer.Items, shown)
	}
	return answer, nil
}

// mayRead refuses callers who cannot read everything that the definition reads.
func (e *Evaluator) mayRead(ctx context.Context, name string, spec *v1alpha1.ConfigurationProfileDefinitionSpec) error {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	var lacks []string
	for _, requirement := range spec.Requirements {
		if requirement.Access == v1alpha1.AccessSchema {
			continue
		}
		for _, asked := range cel.Rights(requirement.Definition, v1alpha1.AccessRead) {
			allowed, err := asked.Has(ctx, e.Authorizer, caller)
			if err != nil && !allowed {
				return authz.Unknown(err)
			}
			if !allowed && asked.Verb != "watch" {
				lacks = append(lacks, asked.String())
			}
		}
	}
	if len(lacks) > 0 {
		return apierrors.NewForbidden(v1alpha1.Resource("configurationprofiledefinitions"), name, fmt.Errorf(
			"the objects that the profile makes may show what it reads, and you cannot %s", strings.Join(lacks, ", ")))
	}
	return nil
}

func (e *Evaluator) facts(ctx context.Context, made *cel.Profile) (profile.Facts, error) {
	client, err := e.ClientOf(string(made.Name()))
	if err != nil {
		return profile.Facts{}, apierrors.NewInternalError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, survey.DefaultTimeout)
	defer cancel()
	facts, unread := survey.Facts(ctx, client, made.Requires())
	for name, err := range unread {
		return facts, apierrors.NewServiceUnavailable(fmt.Sprintf("%s cannot be read in the name of the profile: %s", name, err))
	}
	return facts, nil
}

// item returns one item as the caller may see it.
func (e *Evaluator) item(ctx context.Context, owner v1alpha1.ProfileName, item profile.Item, facts profile.Facts) (hco.EvaluatedItem, error) {
	seen, shown, err := e.Differ.Item(ctx, owner, &item, facts)
	if err != nil {
		return hco.EvaluatedItem{}, err
	}
	out := hco.EvaluatedItem{
		Name: item.Name, TargetRef: hco.TargetRef(seen.TargetRef), ImpactSeverity: hco.ImpactSeverity(item.Impact), ImpactReason: item.Reason,
		BlastRadius: (*hco.BlastRadius)(item.Blast), Notes: item.Notes, Diff: seen.Diff, Message: seen.Message,
	}
	for _, wait := range item.Waits {
		out.Waits = append(out.Waits, wait.Message)
	}
	if shown {
		if out.Object, err = jsonObject(item.Object); err != nil {
			return out, apierrors.NewInternalError(err)
		}
	}
	return out, nil
}

func jsonObject(content map[string]any) (*hco.JSONObject, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("writing an object as JSON: %w", err)
	}
	return &hco.JSONObject{Raw: raw}, nil
}
