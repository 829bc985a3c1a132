package owners

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
)

// TestOwners: adding an owner needs the right to delete, and removing an owner does not.
func TestOwners(t *testing.T) {
	hook := Webhook()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	var conditions []cel.ExpressionAccessor
	for i := range hook.Registration.Conditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&hook.Registration.Conditions[i]))
	}
	evaluator := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	matcher := matchconditions.NewMatcher(evaluator, &hook.Registration.FailurePolicy, "webhook", "admit", hook.Name)
	object := func(uids ...string) (*unstructured.Unstructured, *webhook.Object) {
		raw := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "argocd"}}}
		read := &webhook.Object{}
		var owners []any
		for _, uid := range uids {
			owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": uid})
			read.Metadata.OwnerReferences = append(read.Metadata.OwnerReferences, webhook.Owner{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: uid})
		}
		if owners != nil {
			raw.Object["metadata"].(map[string]any)["ownerReferences"] = owners
		}
		return raw, read
	}
	catalogs := schema.GroupVersionResource{Group: extension.Resource.Group, Version: "v1", Resource: "clustercatalogs"}
	for name, tc := range map[string]struct {
		reason   string
		old, new []string
		// mayDelete is true if the requester has that right, and refused is the expected answer.
		mayDelete, refused bool
	}{
		"Added":      {reason: "it may be gone", new: []string{"1"}, refused: true},
		"Beside":     {reason: "one more", old: []string{"1"}, new: []string{"1", "2"}, refused: true},
		"InPlace":    {reason: "another one", old: []string{"1"}, new: []string{"2"}, refused: true},
		"MayDelete":  {reason: "it is no more than they may", new: []string{"1"}, mayDelete: true},
		"Removed":    {reason: "it stays", old: []string{"1", "2"}, new: []string{"2"}},
		"RemovedAll": {reason: "it stays", old: []string{"1"}},
		"Kept":       {reason: "nothing", old: []string{"1"}, new: []string{"1"}},
	} {
		for _, resource := range []schema.GroupVersionResource{extension.Resource, catalogs, chartkind.Resource} {
			may := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if tc.mayDelete && a.GetVerb() == "delete" && a.GetAPIGroup() == resource.Group && a.GetResource() == resource.Resource && a.GetName() == "argocd" {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			old, oldRead := object(tc.old...)
			updated, read := object(tc.new...)
			kind := resource.GroupVersion().WithKind("K")
			versioned := &admission.VersionedAttributes{
				VersionedKind: kind, VersionedObject: admission.NewLazyObject(updated), VersionedOldObject: admission.NewLazyObject(old),
				Attributes: admission.NewAttributesRecord(updated, old, kind, "", "argocd", resource, "", admission.Update, nil, false, &user.DefaultInfo{Name: "mallory"}),
			}
			result := matcher.Match(t.Context(), versioned, nil, may)
			if result.Error != nil {
				t.Fatal(result.Error)
			}
			says := ""
			if result.Matches {
				says = hook.Judge(webhook.Review{Operation: admissionv1.Update, Kind: "K", Name: "argocd", Old: oldRead, Object: read})
			}
			if (says != "") != tc.refused {
				t.Errorf("%s of %s: %s: %q", name, resource.Resource, tc.reason, says)
			}
		}
	}
}
