package imagetemplate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
)

// engine is a user who writes on behalf of others.
const engine = "system:serviceaccount:penstock-system:penstock-engine"

// host answers the lookups of the webhook: alice and the engine can get every object.
type host struct{ asked []string }

func (h *host) Find(_ context.Context, object imagetemplate.Object) (lookup.Resource, error) {
	switch object.Kind {
	case "Secret":
		return lookup.Resource{}, &lookup.Missing{Detail: "templates never read Secrets"}
	case "Later":
		return lookup.Resource{}, &lookup.Missing{Kind: true, Detail: "there is no such kind"}
	case "Down":
		return lookup.Resource{}, errors.New("the API is down")
	}
	return lookup.Resource{GroupVersionResource: schema.GroupVersionResource{Group: object.Group, Version: object.Version, Resource: strings.ToLower(object.Kind) + "s"}, Namespaced: true}, nil
}

func (h *host) May(_ context.Context, who user.Info, asked authz.Right) (bool, error) {
	h.asked = append(h.asked, who.GetName()+" "+asked.String())
	return who.GetName() == "alice" || who.GetName() == engine, nil
}

func variable(kind, name string) string {
	return "{group:example.com,version:v1,kind:" + kind + ",name:" + name + ",namespace:ns,jsonpath:{.a}}"
}

func source(annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc"}}}
	object.SetGroupVersionKind(annotated.CatalogSources().GroupVersionKind)
	object.SetNamespace("olm")
	object.SetName("catalog")
	object.SetUID("u1")
	object.SetAnnotations(annotations)
	return object
}

func decided(t *testing.T, by *host, who string, object, old *unstructured.Unstructured) webhook.Answer {
	t.Helper()
	r := webhooktest.Review(t, authenticationv1.UserInfo{Username: who}, object, old)
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	all := Webhooks(func() (author.Key, error) { return author.NewKey([]byte("secret")), nil }, func() time.Time { return now }, func(who string) bool { return who == engine }, by)
	return all[0].Decide(t.Context(), r)
}

func TestDoorOfTemplates(t *testing.T) {
	first := source(map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Sample", "one")})
	given := decided(t, &host{}, "alice", first, nil)
	stamp := given.Annotations[extension.AuthorAnnotation]
	if given.Refusal != nil || stamp == nil || !strings.Contains(*stamp, `"user":"alice"`) || !strings.Contains(*stamp, `"kind":"CatalogSource.operators.coreos.com"`) {
		t.Fatalf("alice's template: %+v", given)
	}
	stored := source(map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Sample", "one"), extension.AuthorAnnotation: *stamp})
	for name, tc := range map[string]struct {
		reason      string
		who         string
		annotations map[string]string
		old         *unstructured.Unstructured
		refused     string
		warned      string
		asked       []string
	}{
		"Version":    {reason: "well-known variables need no right", who: "mallory", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:{kube_minor_version}"}},
		"NoRight":    {reason: "the object is another's", who: "mallory", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Sample", "one")}, refused: "mallory cannot get samples.example.com ns/one", asked: []string{"mallory get samples.example.com ns/one"}},
		"Ours":       {reason: "our annotation is one", who: "mallory", annotations: map[string]string{annotated.OwnAnnotation: "quay.io/c:" + variable("Sample", "one")}, refused: "mallory cannot get", asked: []string{"mallory get samples.example.com ns/one"}},
		"Secret":     {reason: "no matter who asks", who: "alice", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Secret", "one")}, refused: "never read Secrets"},
		"LaterKind":  {reason: "its kind may come", who: "mallory", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Later", "one")}, warned: "there is no such kind"},
		"Down":       {reason: "it is asked for again before it is read", who: "mallory", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Down", "one")}, warned: "the API is down"},
		"Syntax":     {reason: "it is told at once", who: "mallory", annotations: map[string]string{annotated.OLMAnnotation: "quay.io/c:{foo}"}, warned: "at byte 10"},
		"TakeOver":   {reason: "who takes it over answers for it", who: "mallory", old: stored, annotations: map[string]string{annotated.OLMAnnotation: stored.GetAnnotations()[annotated.OLMAnnotation], extension.AuthorAnnotation: author.Renew}, refused: "mallory cannot get", asked: []string{"mallory get samples.example.com ns/one"}},
		"OneOfBoth":  {reason: "who changes one answers for both", who: "mallory", old: stored, annotations: map[string]string{annotated.OLMAnnotation: stored.GetAnnotations()[annotated.OLMAnnotation], annotated.OwnAnnotation: "x"}, refused: "mallory cannot get", asked: []string{"mallory get samples.example.com ns/one"}},
		"Removed":    {reason: "nothing is read any more", who: "mallory", old: stored},
		"TakenStamp": {reason: "the stamp stays", who: "mallory", old: stored, annotations: map[string]string{annotated.OLMAnnotation: stored.GetAnnotations()[annotated.OLMAnnotation]}},
	} {
		t.Run(name, func(t *testing.T) {
			by := &host{}
			given := decided(t, by, tc.who, source(tc.annotations), tc.old)
			refused := ""
			if given.Refusal != nil {
				refused = given.Refusal.Message
				if given.Refusal.Code != http.StatusForbidden {
					t.Errorf("the code is %d", given.Refusal.Code)
				}
			}
			if (refused == "") != (tc.refused == "") || !strings.Contains(refused, tc.refused) {
				t.Errorf("%s: refused %q, want %q", tc.reason, refused, tc.refused)
			}
			if warned := strings.Join(given.Warnings, "\n"); refused == "" && ((warned == "") != (tc.warned == "") || !strings.Contains(warned, tc.warned)) {
				t.Errorf("%s: warned %q, want %q", tc.reason, warned, tc.warned)
			}
			if !slices.Equal(by.asked, tc.asked) {
				t.Errorf("%s: asked %q, want %q", tc.reason, by.asked, tc.asked)
			}
			if name == "TakenStamp" && (given.Annotations[extension.AuthorAnnotation] == nil || *given.Annotations[extension.AuthorAnnotation] != *stamp) {
				t.Errorf("%s: %v", tc.reason, given.Annotations)
			}
		})
	}
}

// TestWrittenForOthers: Penstock writes such objects for a user whose rights are unknown. So the
// webhook signs nothing, and removes the signature of a changed template.
func TestWrittenForOthers(t *testing.T) {
	template := "quay.io/c:" + variable("Sample", "one")
	signed := func(text string) *unstructured.Unstructured {
		object := source(map[string]string{annotated.OLMAnnotation: text})
		given := decided(t, &host{}, "alice", object, source(nil))
		object.SetAnnotations(map[string]string{annotated.OLMAnnotation: text, extension.AuthorAnnotation: *given.Annotations[extension.AuthorAnnotation]})
		return object
	}
	by := func(annotations map[string]string, old *unstructured.Unstructured) string {
		object := source(annotations)
		given := decided(t, &host{}, engine, object, old)
		if given.Refusal != nil {
			t.Fatal(given.Refusal.Message)
		}
		if value, found := given.Annotations[extension.AuthorAnnotation]; found {
			annotations = map[string]string{annotated.OLMAnnotation: annotations[annotated.OLMAnnotation], annotated.OwnAnnotation: annotations[annotated.OwnAnnotation]}
			if value != nil {
				annotations[extension.AuthorAnnotation] = *value
			}
		}
		return annotations[extension.AuthorAnnotation]
	}
	alices := signed(template)
	stamp := alices.GetAnnotations()[extension.AuthorAnnotation]
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		old         *unstructured.Unstructured
		want        string
	}{
		"Created":   {"in whose name is not known", map[string]string{annotated.OLMAnnotation: template}, nil, ""},
		"Renewed":   {"nor who takes it over", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: author.Renew}, nil, ""},
		"Copied":    {"a stamp in the manifest is none of it", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: stamp}, nil, ""},
		"Changed":   {"alice wrote another", map[string]string{annotated.OLMAnnotation: template + "-x", extension.AuthorAnnotation: stamp}, alices, ""},
		"Other":     {"alice answers for both annotations", map[string]string{annotated.OLMAnnotation: template, annotated.OwnAnnotation: "x", extension.AuthorAnnotation: stamp}, alices, ""},
		"Unchanged": {"it is alice's", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: stamp}, alices, stamp},
		"TakenOver": {"it stays alice's", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: author.Renew}, alices, stamp},
		"Unsigned":  {"what nobody has signed stays so", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: author.Renew}, source(map[string]string{annotated.OLMAnnotation: template}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := by(tc.annotations, tc.old); got != tc.want {
				t.Errorf("%s: the stamp is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWithoutKey: while the key is unavailable, a template can be written without a signature, as
// while Penstock is down.
func TestWithoutKey(t *testing.T) {
	object := source(map[string]string{annotated.OLMAnnotation: "quay.io/c:" + variable("Sample", "one")})
	content, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	kind := annotated.CatalogSources()
	review := webhook.Review{Operation: admissionv1.Create, Group: kind.Group, Kind: kind.Kind, Namespace: "olm", Name: "catalog", User: authenticationv1.UserInfo{Username: "alice"}, ObjectJSON: content}
	none := func() (author.Key, error) { return author.Key{}, errors.New("the store is another one") }
	given := Webhooks(none, time.Now, nil, &host{})[0].Decide(t.Context(), review)
	if given.Refusal != nil || len(given.Annotations) > 0 || !strings.Contains(strings.Join(given.Warnings, "\n"), "the store is another one") {
		t.Errorf("it is %+v, want a warning", given)
	}
}

// TestAsked: kube-apiserver calls the webhook for writes of templates only.
func TestAsked(t *testing.T) {
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	w := Webhooks(nil, nil, nil, nil)[0]
	var conditions []cel.ExpressionAccessor
	for i := range w.Registration.Conditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&w.Registration.Conditions[i]))
	}
	compiled := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	if errs := compiled.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	matcher := matchconditions.NewMatcher(compiled, &w.Registration.FailurePolicy, "webhook", "admit", w.Name)
	bare, plain, template := source(nil), source(map[string]string{"a": "b"}), source(map[string]string{annotated.OLMAnnotation: "x"})
	edited := source(map[string]string{annotated.OLMAnnotation: "x"})
	edited.Object["spec"] = map[string]any{"image": "y"}
	for name, tc := range map[string]struct {
		object, old *unstructured.Unstructured
		want        bool
	}{
		"CreatedWithout": {bare, nil, false}, "CreatedPlain": {plain, nil, false}, "Created": {template, nil, true}, "Added": {template, plain, true}, "Removed": {bare, template, true},
		"Edited": {edited, template, false}, "Changed": {source(map[string]string{annotated.OwnAnnotation: "x"}), plain, true}, "Stamp": {source(map[string]string{extension.AuthorAnnotation: "x"}), bare, true}, "Other": {plain, bare, false},
	} {
		operation, before := admission.Create, runtime.Object(nil)
		kind := annotated.CatalogSources()
		versioned := &admission.VersionedAttributes{VersionedKind: kind.GroupVersionKind, VersionedObject: admission.NewLazyObject(tc.object)}
		if tc.old != nil {
			operation, before = admission.Update, tc.old
			versioned.VersionedOldObject = admission.NewLazyObject(tc.old)
		}
		versioned.Attributes = admission.NewAttributesRecord(tc.object, before, kind.GroupVersionKind, "olm", "catalog", kind.Resource, "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
		if got := matcher.Match(t.Context(), versioned, nil, nil); got.Error != nil || got.Matches != tc.want {
			t.Errorf("%s: %t (%v), want %t", name, got.Matches, got.Error, tc.want)
		}
	}
}
