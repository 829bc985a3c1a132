package governed

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// mayBypass grants bypass for one extension, or for all with "*".
type mayBypass string

func (m mayBypass) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if m != "" && a.GetVerb() == "bypass" && a.GetAPIGroup() == "policy.penstock.dev" && a.GetResource() == "privilegechecks" && (m == "*" || a.GetName() == string(m)) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// way is a write by which an extension loses an object in a protected namespace.
type way struct {
	reason    string
	operation admission.Operation
	old, new  *unstructured.Unstructured
	// steers is true for a write that makes the control plane delete the object.
	steers bool
	// namespace is true for a write that deletes all objects of the namespace, of any extension.
	namespace bool
}

func claim(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{
			"name": "data-db-0", "namespace": "keep", "labels": map[string]any{v1alpha1.ChainLabel: "keep"},
			"managedFields": []any{map[string]any{"manager": "penstock/keep", "operation": "Apply"}},
		},
	}}
	for _, do := range change {
		do(o)
	}
	return o
}

func ownedBy(uids ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		var owners []any
		for _, uid := range uids {
			owners = append(owners, map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid})
		}
		o.Object["metadata"].(map[string]any)["ownerReferences"] = owners
	}
}

func namespaceOf(labels map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "keep", "labels": labels,
			"managedFields": []any{map[string]any{"manager": "penstock/keep", "operation": "Apply"}}},
	}}
}

func ways() map[string]way {
	relabelled := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1alpha1.ChainLabel: "bobs"}) }
	bare := func(o *unstructured.Unstructured) { o.SetLabels(nil) }
	unmanaged := func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }
	return map[string]way{
		"Delete":        {reason: "deleted", operation: admission.Delete, old: claim()},
		"Relabel":       {reason: "given to another extension, which deletes it", operation: admission.Update, old: claim(), new: claim(relabelled)},
		"Unlabel":       {reason: "no extension's, so that anybody deletes it", operation: admission.Update, old: claim(), new: claim(bare)},
		"Unmanage":      {reason: "the same by managedFields", operation: admission.Update, old: claim(), new: claim(unmanaged)},
		"Owner":         {reason: "an owner with which the collector deletes it", operation: admission.Update, old: claim(), new: claim(ownedBy("1")), steers: true},
		"AnotherOwner":  {reason: "beside one that it has", operation: admission.Update, old: claim(ownedBy("1")), new: claim(ownedBy("1", "2")), steers: true},
		"OtherOwner":    {reason: "in place of one that it has", operation: admission.Update, old: claim(ownedBy("1")), new: claim(ownedBy("2")), steers: true},
		"Namespace":     {reason: "with its namespace, which nobody rolled out", operation: admission.Delete, old: namespaceOf(map[string]any{NamespaceLabel: "true"}), namespace: true},
		"NamespaceKept": {reason: "with its namespace", operation: admission.Delete, old: namespaceOf(map[string]any{NamespaceLabel: "true", v1alpha1.ChainLabel: "keep"})},
	}
}

// TestWays covers all ways in which an object can be lost, for all kinds of requesters.
// TestProtected of pkg/rollout tests the writes of the engine.
func TestWays(t *testing.T) {
	person := func(name string) user.Info {
		return &user.DefaultInfo{Name: name, Groups: []string{"system:authenticated"}}
	}
	hooks := compile(t)
	controller := func(name string) user.Info {
		return &user.DefaultInfo{Name: "system:serviceaccount:kube-system:" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}}
	}
	for who, requester := range map[string]struct {
		user  user.Info
		right mayBypass
		// may reports whether the requester is allowed a way.
		may func(way) bool
	}{
		"Nobody":      {person("bob"), "", func(way) bool { return false }},
		"OfAnother":   {person("bob"), "bobs", func(way) bool { return false }},
		"Bypass":      {person("brenda"), "keep", func(w way) bool { return !w.namespace }},
		"BypassAll":   {person("admin"), "*", func(way) bool { return true }},
		"Forger":      {&user.DefaultInfo{Name: "system:serviceaccount:default:penstock", Groups: []string{"system:authenticated"}}, "", func(way) bool { return false }},
		"Collector":   {controller("generic-garbage-collector"), "", func(w way) bool { return !w.steers }},
		"Namespaces":  {controller("namespace-controller"), "", func(w way) bool { return !w.steers }},
		"StatefulSet": {controller("statefulset-controller"), "", func(w way) bool { return !w.steers }},
		"OneAccount":  {person("system:kube-controller-manager"), "", func(w way) bool { return !w.steers }},
		"APIServer":   {&user.DefaultInfo{Name: "system:apiserver", Groups: []string{"system:masters"}}, "", func(w way) bool { return !w.steers }},
		"Kubelet":     {&user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}, "", func(w way) bool { return !w.steers }},
		"Engine":      {person("penstock"), "", func(way) bool { return true }},
	} {
		for name, w := range ways() {
			t.Run(who+"/"+name, func(t *testing.T) {
				if got := refused(t, hooks, w, requester.user, requester.right) == ""; got != requester.may(w) {
					t.Errorf("%s: allowed is %t", w.reason, got)
				}
			})
		}
	}
}

// TestStays: harmless writes of the control plane do not wait for Penstock.
func TestStays(t *testing.T) {
	hooks := compile(t)
	collector := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: []string{"system:serviceaccounts:kube-system"}}
	unblocked := func(o *unstructured.Unstructured) {
		o.Object["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)["blockOwnerDeletion"] = false
	}
	for name, w := range map[string]way{
		"Disown":  {reason: "orphans lose their owner", operation: admission.Update, old: claim(ownedBy("1", "2")), new: claim(ownedBy("1"))},
		"Unblock": {reason: "an owner need not wait", operation: admission.Update, old: claim(ownedBy("1")), new: claim(ownedBy("1"), unblocked)},
		"Status":  {reason: "status", operation: admission.Update, old: claim(ownedBy("1")), new: claim(ownedBy("1"))},
	} {
		if says := refused(t, hooks, w, collector, ""); says != "" {
			t.Errorf("%s (%s): %s", name, w.reason, says)
		}
	}
}

// refused returns the answer of kube-apiserver, which calls the webhooks whose match conditions are
// true.
func refused(t *testing.T, hooks []compiled, w way, who user.Info, right mayBypass) string {
	t.Helper()
	var says []string
	for _, hook := range hooks {
		if hook.Registration.ObjectLabel != "" && w.old.GetLabels()[hook.Registration.ObjectLabel] == "" {
			continue
		}
		if w.old.GetKind() != "Namespace" && hook.Name == "governed-namespace" {
			continue
		}
		if hook.isAsked(t, w, who, right) {
			if says = append(says, hook.Judge(reviewOf(t, w))); says[len(says)-1] == "" {
				t.Errorf("%s is asked and refuses nothing: its conditions let too much through", hook.Name)
			}
		}
	}
	return strings.Join(says, "\n")
}

// compiled is a webhook with its conditions, compiled like in kube-apiserver.
type compiled struct {
	webhook.Webhook
	matcher matchconditions.Matcher
}

func compile(t *testing.T) []compiled {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	var hooks []compiled
	for _, hook := range Webhooks("penstock") {
		var conditions []cel.ExpressionAccessor
		for i := range hook.Registration.Conditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&hook.Registration.Conditions[i]))
		}
		evaluator := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if errs := evaluator.CompilationErrors(); len(errs) > 0 {
			t.Fatalf("%s: %v", hook.Name, errs)
		}
		hooks = append(hooks, compiled{hook, matchconditions.NewMatcher(evaluator, &hook.Registration.FailurePolicy, "webhook", "admit", hook.Name)})
	}
	return hooks
}

func (hook compiled) isAsked(t *testing.T, w way, who user.Info, right mayBypass) bool {
	t.Helper()
	kind := w.old.GroupVersionKind()
	versioned := &admission.VersionedAttributes{VersionedKind: kind, VersionedOldObject: admission.NewLazyObject(w.old)}
	var object runtime.Object
	if w.new != nil {
		object, versioned.VersionedObject = w.new, admission.NewLazyObject(w.new)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind.Kind) + "s"}
	versioned.Attributes = admission.NewAttributesRecord(object, w.old, kind, w.old.GetNamespace(), w.old.GetName(), resource, "", w.operation, nil, false, who)
	result := hook.matcher.Match(t.Context(), versioned, nil, right)
	if result.Error != nil {
		t.Fatalf("%s: %v", hook.Name, result.Error)
	}
	return result.Matches
}

func reviewOf(t *testing.T, w way) webhook.Review {
	t.Helper()
	read := func(o *unstructured.Unstructured) *webhook.Object {
		if o == nil {
			return nil
		}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		object := &webhook.Object{}
		if err := json.Unmarshal(raw, object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	return webhook.Review{Operation: admissionv1.Operation(w.operation), Kind: w.old.GetKind(), Namespace: w.old.GetNamespace(), Name: w.old.GetName(), Old: read(w.old), Object: read(w.new)}
}
