// Package governed prevents users from deleting objects of an extension by hand, in namespaces that
// have the protect label. Penstock repairs drift anyway, but a deleted Deployment is absent for a
// while, and a PersistentVolumeClaim is created again empty.
package governed

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const (
	// NamespaceLabel, with the value "true" on a namespace, protects the objects of extensions in
	// it.
	NamespaceLabel = v1alpha1.ProtectLabel

	managerPrefix = "penstock/"
	// timeoutSeconds is short, because an answer takes a millisecond, and every such deletion waits
	// for it while Penstock is down.
	timeoutSeconds = 3
)

// Webhooks returns the webhooks that protect objects and their namespaces. users are Penstock's own
// users, which are exempt: the engine itself never takes a protected object from another extension
// (pkg/rollout, protection.go).
func Webhooks(users ...string) []webhook.Webhook {
	own := "["
	for i, user := range users {
		if i > 0 {
			own += ", "
		}
		own += fmt.Sprintf("%q", user)
	}
	own += "]"
	// The protection must hold while Penstock is down, so it fails closed. Users with the right to
	// bypass, and controllers of the cluster, do not wait: the host evaluates their match
	// conditions without a call.
	registration := webhook.Registration{
		NamespaceLabel: NamespaceLabel,
		FailurePolicy:  admissionregistrationv1.Fail,
		TimeoutSeconds: timeoutSeconds,
	}
	objects, namespaces := registration, registration
	objects.Rules, objects.ObjectLabel, objects.Conditions = rules(), v1alpha1.ChainLabel, conditions(own)
	namespaces.Rules, namespaces.Conditions = namespaceRules(), namespaceConditions(own)
	return []webhook.Webhook{
		{Name: "governed", Judge: judge, Registration: objects},
		{Name: "governed-namespace", Judge: judgeNamespace, Registration: namespaces},
	}
}

// rules returns every way in which metadata of an object can change. Subresources are included: the
// API server writes managedFields through them, and for most kinds also labels and owners from the
// request.
func rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{
		rule(admissionregistrationv1.NamespacedScope, "*", []string{"*/*"}, admissionregistrationv1.Update, admissionregistrationv1.Delete),
		// Deleting a namespace deletes all objects in it.
		rule(admissionregistrationv1.ClusterScope, "", []string{"namespaces", "namespaces/*"}, admissionregistrationv1.Update, admissionregistrationv1.Delete),
		// Labels of a binding become labels of its pod.
		rule(admissionregistrationv1.NamespacedScope, "", []string{"bindings", "pods/binding"}, admissionregistrationv1.Create),
	}
}

// namespaceRules returns the deletion of a namespace, which deletes all protected objects in it.
func namespaceRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{rule(admissionregistrationv1.ClusterScope, "", []string{"namespaces"}, admissionregistrationv1.Delete)}
}

func rule(scope admissionregistrationv1.ScopeType, group string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: ptr.To(scope)}}
}

const (
	// isControlPlane is true for garbage collection, the namespace controller and kubelets.
	isControlPlane = "'system:serviceaccounts:kube-system' in request.userInfo.groups || " +
		"'system:nodes' in request.userInfo.groups || " +
		"request.userInfo.username in ['system:kube-controller-manager', 'system:apiserver']"
	// addsOwner is true for an update that adds an owner.
	addsOwner = "request.operation == 'UPDATE' && has(object.metadata.ownerReferences) && " +
		"(!has(oldObject.metadata.ownerReferences) || !object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(p, p.uid == o.uid)))"
	// checks is the authorizer of bypass.
	checks = "authorizer.group('policy.penstock.dev').resource('privilegechecks')"
)

// namespaceConditions require the right to bypass for the extension that has rolled out the
// namespace. For another namespace the owners of its objects are unknown, so the right for all
// extensions is required.
func namespaceConditions(own string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		{Name: "not-penstock", Expression: "!(request.userInfo.username in " + own + ")"},
		{Name: "not-the-control-plane", Expression: "!(" + isControlPlane + ")"},
		{Name: "may-not-bypass", Expression: "!(has(oldObject.metadata.labels) && '" + v1alpha1.ChainLabel + "' in oldObject.metadata.labels ? " + checks +
			".name(oldObject.metadata.labels['" + v1alpha1.ChainLabel + "']) : " + checks + ").check('bypass').allowed()"},
	}
}

// conditions begin with the cheapest. The last needs an access review. Ordinary writes of status
// and scale end at the third without a request. The only creation among the rules is a binding, and
// the object selector requires our label on it.
func conditions(own string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "has-extension", Expression: "request.operation == 'CREATE' || has(oldObject.metadata.labels) && '" + v1alpha1.ChainLabel + "' in oldObject.metadata.labels"},
		// A deletion that has begun must be able to remove finalizers.
		{Name: "not-being-deleted", Expression: "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)"},
		{Name: "goes-or-gets-away", Expression: "request.operation != 'UPDATE' || " +
			"!has(object.metadata.labels) || !('" + v1alpha1.ChainLabel + "' in object.metadata.labels) || " +
			"object.metadata.labels['" + v1alpha1.ChainLabel + "'] != oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'] || " +
			"!has(object.metadata.managedFields) || " +
			"!object.metadata.managedFields.exists(f, has(f.manager) && f.manager == '" + managerPrefix + "' + oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'] && " +
			"has(f.operation) && f.operation == 'Apply') || " +
			"has(object.metadata.ownerReferences) && (!has(oldObject.metadata.ownerReferences) || object.metadata.ownerReferences != oldObject.metadata.ownerReferences)"},
		{Name: "not-penstock", Expression: "!(request.userInfo.username in " + own + ")"},
		// The control plane only executes decisions of other users, so its deletions are allowed.
		// But an owner that it adds is checked: a user can request it, for example by a StatefulSet
		// that deletes its claims.
		{Name: "not-the-control-plane", Expression: "!(" + isControlPlane + ") || " + addsOwner},
		// The review of a binding does not name the extension of its pod, so the right for all
		// extensions is required.
		{Name: "may-not-bypass", Expression: "!(request.operation == 'CREATE' ? " + checks + " : " + checks +
			".name(oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'])).check('bypass').allowed()"},
	}
}

// judge refuses to delete a protected object, or to remove its marks. The host calls it only for
// users without the right to bypass.
func judge(r webhook.Review) string {
	if r.Operation == admissionv1.Create {
		return judgeBinding(r)
	}
	if r.Old == nil || r.Old.Metadata.DeletionTimestamp != nil {
		return ""
	}
	chain, ok := chainOf(r.Old)
	if !ok {
		return ""
	}
	switch r.Operation {
	case admissionv1.Delete:
		return refusal("deleting", r, chain)
	case admissionv1.Update:
		if now, ok := chainOf(r.Object); !ok || now != chain {
			return refusal("removing the marks of Penstock from", r, chain)
		}
		// Garbage collection is exempt from this webhook. It deletes an object whose owners do not
		// exist, so an added owner can delete the object.
		for _, owner := range r.Object.Metadata.OwnerReferences {
			if !slices.Contains(r.Old.Metadata.OwnerReferences, owner) {
				return refusal("giving an owner to", r, chain)
			}
		}
	}
	return ""
}

// judgeNamespace refuses to delete a namespace that protects objects.
func judgeNamespace(r webhook.Review) string {
	if r.Operation != admissionv1.Delete || r.Kind != "Namespace" || r.Group != "" || r.Old == nil || r.Old.Metadata.DeletionTimestamp != nil ||
		r.Old.Metadata.Labels[NamespaceLabel] != "true" {
		return ""
	}
	return fmt.Sprintf("deleting %s is not allowed: it protects the objects that extensions have rolled out in it (label %s). "+
		"Remove the label, or ask for the verb bypass on privilegechecks.policy.penstock.dev, of all names", r, NamespaceLabel)
}

// judgeBinding refuses to move a pod to another chain. Schedulers never set this label; a pod gets
// it from its manifest.
func judgeBinding(r webhook.Review) string {
	if r.Kind != "Binding" || r.Group != "" || r.Object == nil {
		return ""
	}
	if _, labelled := r.Object.Metadata.Labels[v1alpha1.ChainLabel]; !labelled {
		return ""
	}
	return fmt.Sprintf("giving Pod %s/%s the label %s by its binding is not allowed: this namespace protects objects that extensions have rolled out (label %s). "+
		"Leave the label out, or ask for the verb bypass on privilegechecks.policy.penstock.dev, of all names",
		r.Namespace, r.Name, v1alpha1.ChainLabel, NamespaceLabel)
}

// chainOf returns the chain that has rolled an object out. The label alone is no proof: the control
// plane copies labels of Services to their EndpointSlices.
func chainOf(object *webhook.Object) (string, bool) {
	if object == nil {
		return "", false
	}
	chain := object.Metadata.Labels[v1alpha1.ChainLabel]
	for _, entry := range object.Metadata.ManagedFields {
		if chain != "" && entry.Manager == managerPrefix+chain && entry.Operation == "Apply" {
			return chain, true
		}
	}
	return "", false
}

func refusal(doing string, r webhook.Review, chain string) string {
	return fmt.Sprintf("%s %s is not allowed: extension %q has rolled it out, and this namespace protects such objects (label %s). "+
		"Change the extension, or ask for the verb bypass on privilegechecks.policy.penstock.dev %q",
		doing, r, chain, NamespaceLabel, chain)
}
