// Package governed prevents users from deleting objects of an extension by hand, in namespaces that
// ask for it. Penstock repairs drift anyway, but a deleted Deployment is absent for a while, and a
// PersistentVolumeClaim is created again empty.
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
	// NamespaceLabel is "true" on a namespace whose governed objects are protected.
	NamespaceLabel = v1alpha1.ProtectLabel

	managerPrefix = "penstock/"
	// timeoutSeconds is short: an answer takes a millisecond, and while we do not
	// answer every such deletion waits for it.
	timeoutSeconds = 3
)

// Webhooks are the protection: of objects, and of the namespaces that they are in. Users are
// those in whose name Penstock writes. They are not asked about: the engine itself takes no
// protected object from an extension for somebody else (pkg/rollout, protection.go).
func Webhooks(users ...string) []webhook.Webhook {
	own := "["
	for i, user := range users {
		if i > 0 {
			own += ", "
		}
		own += fmt.Sprintf("%q", user)
	}
	own += "]"
	// Users who ask for protection do not want it to end with us. Users who may bypass, and
	// controllers of the cluster, are not held up: the host finds that out before it asks us.
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

// rules name every way in which metadata of an object can change. Subresources are
// among them: the API server keeps managedFields there, and with most kinds labels and
// owners are taken from the request.
func rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{
		rule(admissionregistrationv1.NamespacedScope, "*", []string{"*/*"}, admissionregistrationv1.Update, admissionregistrationv1.Delete),
		// A namespace takes all with it.
		rule(admissionregistrationv1.ClusterScope, "", []string{"namespaces", "namespaces/*"}, admissionregistrationv1.Update, admissionregistrationv1.Delete),
		// Labels of a binding become labels of its pod.
		rule(admissionregistrationv1.NamespacedScope, "", []string{"bindings", "pods/binding"}, admissionregistrationv1.Create),
	}
}

// namespaceRules name the deletion of a namespace, which takes all with it that is protected there.
func namespaceRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{rule(admissionregistrationv1.ClusterScope, "", []string{"namespaces"}, admissionregistrationv1.Delete)}
}

func rule(scope admissionregistrationv1.ScopeType, group string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: ptr.To(scope)}}
}

const (
	// isControlPlane is true for garbage collection, namespaces, kubelets.
	isControlPlane = "'system:serviceaccounts:kube-system' in request.userInfo.groups || " +
		"'system:nodes' in request.userInfo.groups || " +
		"request.userInfo.username in ['system:kube-controller-manager', 'system:apiserver']"
	// addsOwner is true for an update with an owner that was not there.
	addsOwner = "request.operation == 'UPDATE' && has(object.metadata.ownerReferences) && " +
		"(!has(oldObject.metadata.ownerReferences) || !object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(p, p.uid == o.uid)))"
	// checks is the authorizer of bypass.
	checks = "authorizer.group('policy.penstock.dev').resource('privilegechecks')"
)

// namespaceConditions leave namespaces that an extension has rolled out to the other webhook. Of
// all other namespaces nobody knows whose objects are in them, so that it takes the right for all.
func namespaceConditions(own string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		{Name: "not-penstock", Expression: "!(request.userInfo.username in " + own + ")"},
		{Name: "not-the-control-plane", Expression: "!(" + isControlPlane + ")"},
		{Name: "may-not-bypass", Expression: "!(has(oldObject.metadata.labels) && '" + v1alpha1.ChainLabel + "' in oldObject.metadata.labels ? " + checks +
			".name(oldObject.metadata.labels['" + v1alpha1.ChainLabel + "']) : " + checks + ").check('bypass').allowed()"},
	}
}

// conditions are cheap ones first: the last one costs an access review. Ordinary
// writes of status and scale end at the third, and cost no request. A binding is the
// only creation that we are asked about, and it has our label, or we were not.
func conditions(own string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "has-extension", Expression: "request.operation == 'CREATE' || has(oldObject.metadata.labels) && '" + v1alpha1.ChainLabel + "' in oldObject.metadata.labels"},
		// Deletion that has begun goes on; finalizers are removed.
		{Name: "not-being-deleted", Expression: "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)"},
		{Name: "goes-or-gets-away", Expression: "request.operation != 'UPDATE' || " +
			"!has(object.metadata.labels) || !('" + v1alpha1.ChainLabel + "' in object.metadata.labels) || " +
			"object.metadata.labels['" + v1alpha1.ChainLabel + "'] != oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'] || " +
			"!has(object.metadata.managedFields) || " +
			"!object.metadata.managedFields.exists(f, has(f.manager) && f.manager == '" + managerPrefix + "' + oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'] && " +
			"has(f.operation) && f.operation == 'Apply') || " +
			"has(object.metadata.ownerReferences) && (!has(oldObject.metadata.ownerReferences) || object.metadata.ownerReferences != oldObject.metadata.ownerReferences)"},
		{Name: "not-penstock", Expression: "!(request.userInfo.username in " + own + ")"},
		// Deletions by the control plane were decided elsewhere, and must not hang. The owners
		// that it adds are what others ask it for: a StatefulSet that is to take claims along.
		{Name: "not-the-control-plane", Expression: "!(" + isControlPlane + ") || " + addsOwner},
		// Which extension has rolled out the pod of a binding, the review does not
		// say: then it takes the right for all.
		{Name: "may-not-bypass", Expression: "!(request.operation == 'CREATE' ? " + checks + " : " + checks +
			".name(oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'])).check('bypass').allowed()"},
	}
}

// judge refuses to delete what is governed, and to make it look as if it were not.
// That the requester cannot bypass is known from being asked at all.
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
		// Garbage collection, which is not asked about, deletes what has owners that
		// are gone, and what never had one goes with the first that is none.
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

// judgeBinding refuses to move a pod to another chain. Nothing but a pod's own
// manifest gives it the label, so no scheduler asks for that.
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

// chainOf returns which chain has rolled an object out. The label alone does not say
// so: the control plane copies labels of Services to their EndpointSlices.
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
