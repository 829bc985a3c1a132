// Package governed keeps objects that an extension has rolled out from being deleted
// by hand, in namespaces that ask for it. Drift is repaired anyway, but a Deployment
// that is made anew has been away, and a PersistentVolumeClaim comes back empty.
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
	NamespaceLabel = "policy.penstock.dev/protect"

	managerPrefix = "penstock/"
	// timeoutSeconds is short: an answer takes a millisecond, and while we do not
	// answer every such deletion waits for it.
	timeoutSeconds = 3
)

// Webhook is the protection. Users are those in whose name Penstock writes: they are
// not asked about.
func Webhook(users ...string) webhook.Webhook {
	own := "["
	for i, user := range users {
		if i > 0 {
			own += ", "
		}
		own += fmt.Sprintf("%q", user)
	}
	own += "]"
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete}
	return webhook.Webhook{
		Name:  "governed",
		Judge: judge,
		Registration: webhook.Registration{
			Rules: []admissionregistrationv1.RuleWithOperations{
				{Operations: operations, Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: ptr.To(admissionregistrationv1.NamespacedScope)}},
				// A namespace takes all with it.
				{Operations: operations, Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"namespaces"}, Scope: ptr.To(admissionregistrationv1.ClusterScope)}},
			},
			ObjectLabel:    v1alpha1.ChainLabel,
			NamespaceLabel: NamespaceLabel,
			// Who asks for protection does not want it to end with us. Whoever may
			// bypass, and all controllers of the cluster, are not held up: the host
			// finds that out before it asks us.
			FailurePolicy:  admissionregistrationv1.Fail,
			TimeoutSeconds: timeoutSeconds,
			Conditions:     conditions(own),
		},
	}
}

// conditions are cheap ones first: the last one costs an access review.
func conditions(own string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "has-extension", Expression: "has(oldObject.metadata.labels) && '" + v1alpha1.ChainLabel + "' in oldObject.metadata.labels"},
		// Deletion that has begun goes on; finalizers are removed.
		{Name: "not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		{Name: "goes-or-gets-away", Expression: "request.operation == 'DELETE' || " +
			"!has(object.metadata.labels) || !('" + v1alpha1.ChainLabel + "' in object.metadata.labels) || " +
			"object.metadata.labels['" + v1alpha1.ChainLabel + "'] != oldObject.metadata.labels['" + v1alpha1.ChainLabel + "'] || " +
			"!has(object.metadata.managedFields) || " +
			"!object.metadata.managedFields.exists(f, has(f.manager) && f.manager == '" + managerPrefix + "' + oldObject.metadata.labels['" + v1alpha1.ChainLabel + "']) || " +
			"has(object.metadata.ownerReferences) && (!has(oldObject.metadata.ownerReferences) || object.metadata.ownerReferences != oldObject.metadata.ownerReferences)"},
		{Name: "not-penstock", Expression: "!(request.userInfo.username in " + own + ")"},
		// Garbage collection, namespaces, kubelets: what they delete was decided
		// elsewhere.
		{Name: "not-the-control-plane", Expression: "!('system:serviceaccounts:kube-system' in request.userInfo.groups) && " +
			"!('system:nodes' in request.userInfo.groups) && " +
			"!(request.userInfo.username in ['system:kube-controller-manager', 'system:apiserver'])"},
		{Name: "may-not-bypass", Expression: "!authorizer.group('policy.penstock.dev').resource('privilegechecks')" +
			".name(oldObject.metadata.labels['" + v1alpha1.ChainLabel + "']).check('bypass').allowed()"},
	}
}

// judge refuses to delete what is governed, and to make it look as if it were not.
// That the requester may not bypass is known from being asked at all.
func judge(r webhook.Review) string {
	if r.Old == nil || r.SubResource != "" || r.Old.Metadata.DeletionTimestamp != nil {
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
			return refusal("taking the marks of Penstock off", r, chain)
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
	return fmt.Sprintf("%s %s is not for you: extension %q has rolled it out, and this namespace protects that (label %s). "+
		"Change the extension, or ask for the verb bypass on privilegechecks.policy.penstock.dev %q",
		doing, r, chain, NamespaceLabel, chain)
}
