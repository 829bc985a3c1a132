package extension

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/extension"
)

// mayBypassOne grants bypass for one extension.
type mayBypassOne string

func (m mayBypassOne) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "bypass" && a.GetAPIGroup() == "policy.penstock.dev" && a.GetResource() == "privilegechecks" && a.GetName() == string(m) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// matchers returns the conditions of each webhook for writes, compiled like in kube-apiserver.
func matchers(t *testing.T) map[string]matchconditions.Matcher {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	all := map[string]matchconditions.Matcher{}
	for _, w := range Webhooks(nil, nil, nil, nil, nil, nil) {
		if slices.Equal(w.Registration.Rules[0].Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}) {
			continue // no conditions
		}
		var conditions []cel.ExpressionAccessor
		for i := range w.Registration.Conditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&w.Registration.Conditions[i]))
		}
		compiled := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			t.Fatalf("%s: %v", w.Name, errs)
		}
		policy := w.Registration.FailurePolicy
		all[w.Name] = matchconditions.NewMatcher(compiled, &policy, "webhook", "admit", w.Name)
	}
	return all
}

// asked returns the webhooks that kube-apiserver calls for a write.
func asked(t *testing.T, all map[string]matchconditions.Matcher, object, old *unstructured.Unstructured, may authorizer.UnconditionalAuthorizer) []string {
	t.Helper()
	operation, before := admission.Create, runtime.Object(nil)
	versioned := &admission.VersionedAttributes{VersionedKind: extension.Kind, VersionedObject: admission.NewLazyObject(object)}
	if old != nil {
		operation, before = admission.Update, old
		versioned.VersionedOldObject = admission.NewLazyObject(old)
	}
	versioned.Attributes = admission.NewAttributesRecord(object, before, extension.Kind, "", object.GetName(), extension.Resource, "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		result := all[name].Match(context.Background(), versioned, nil, may)
		if result.Error != nil {
			t.Fatalf("%s: %v", name, result.Error)
		}
		if result.Matches {
			names = append(names, name)
		}
	}
	return names
}

func TestConditions(t *testing.T) {
	all := matchers(t)
	spec := func(version string, annotations map[string]string) *unstructured.Unstructured {
		return written(version, annotations)
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "argocd"}}}
	going := spec("1.0.0", nil)
	going.SetFinalizers([]string{"a"})
	labelled := spec("1.0.0", map[string]string{"a": "b"})
	labelled.SetLabels(map[string]string{"a": "b"})
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprintf("example.com/annotation-%d", i)] = "value"
	}
	for name, tc := range map[string]struct {
		reason      string
		object, old *unstructured.Unstructured
		asked       bool
	}{
		"Create":      {"an author", spec("1.0.0", nil), nil, true},
		"CreateBare":  {"an author, whatever else is wrong", bare, nil, true},
		"Spec":        {"another version", spec("1.1.0", nil), spec("1.0.0", nil), true},
		"SpecGone":    {"no spec", bare, spec("1.0.0", nil), true},
		"Same":        {"nothing", spec("1.0.0", nil), spec("1.0.0", nil), false},
		"SameBare":    {"nothing", bare, bare, false},
		"Finalizer":   {"metadata", going, spec("1.0.0", nil), false},
		"Label":       {"metadata", labelled, spec("1.0.0", nil), false},
		"Set":         {"an annotation of ours", spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "None"}), spec("1.0.0", nil), true},
		"Removed":     {"an annotation of ours", spec("1.0.0", nil), spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "None"}), true},
		"Changed":     {"an annotation of ours", spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "a"}), spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "b"}), true},
		"Kept":        {"one of ours stays", spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "a", "b": "c"}), spec("1.0.0", map[string]string{extension.OnFailureAnnotation: "a", "b": "d"}), false},
		"Forged":      {"the stamp", spec("1.0.0", map[string]string{extension.AuthorAnnotation: "a"}), spec("1.0.0", map[string]string{extension.AuthorAnnotation: "b"}), true},
		"StampGone":   {"the stamp", spec("1.0.0", nil), spec("1.0.0", map[string]string{extension.AuthorAnnotation: "b"}), true},
		"Many":        {"the cost is bounded", spec("1.0.0", many), spec("1.0.0", many), false},
		"LongVersion": {"the cost is bounded", spec(strings.Repeat("a", 1<<16), many), spec(strings.Repeat("a", 1<<16), many), false},
	} {
		t.Run(name, func(t *testing.T) {
			for who, author := range map[string]string{"argocd": "extension-author-bypass", "another": "extension-author"} {
				want := ""
				if tc.asked {
					want = "extension " + author
				}
				if got := strings.Join(asked(t, all, tc.object, tc.old, mayBypassOne(who)), " "); got != want {
					t.Errorf("%s (who may bypass %s): asked are %q, want %q", tc.reason, who, got, want)
				}
			}
		})
	}
	for _, w := range Webhooks(nil, nil, nil, nil, nil, nil) {
		if path := w.Path(); !w.Authenticated || !strings.HasPrefix(path, "/apis/") || !webhookLeadsThroughHost(w) {
			t.Errorf("%s is heard at %s", w.Name, path)
		}
	}
}

// webhookLeadsThroughHost reports whether a registration names the Service of kube-apiserver.
func webhookLeadsThroughHost(w webhook.Webhook) bool {
	at := webhook.Address{Namespace: "penstock-system", Service: "penstock", Port: 443}
	if w.Mutating {
		service := webhook.MutatingConfiguration("x", []webhook.Webhook{w}, at).Webhooks[0].ClientConfig.Service
		return *service.Namespace == "default" && *service.Name == "kubernetes" && *service.Port == 443
	}
	service := webhook.Configuration("x", []webhook.Webhook{w}, at).Webhooks[0].ClientConfig.Service
	return *service.Namespace == "default" && *service.Name == "kubernetes" && *service.Port == 443
}
