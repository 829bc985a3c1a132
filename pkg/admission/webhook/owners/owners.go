// Package owners is the webhook that prevents deletion through the right to patch, for Penstock's
// kinds that the host serves. Garbage collection deletes an object whose owner does not exist, and
// with it the objects of the extension. So a user who adds an owner needs the right to delete the
// object. The admission plugin Owners does the same for kinds that Penstock serves.
package owners

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
)

// timeoutSeconds is short: an answer takes a millisecond.
const timeoutSeconds = 3

// Webhook refuses owners that are added by users who cannot delete the object. A match
// condition exempts all other users, so kube-apiserver does not call it for them.
func Webhook() webhook.Webhook {
	rule := func(group string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: ptr.To(admissionregistrationv1.ClusterScope)},
		}
	}
	return webhook.Webhook{
		Name: "owners", Judge: judge,
		Registration: webhook.Registration{
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(extension.Resource.Group, extension.Resource.Resource, "clustercatalogs"),
				rule(chartkind.Resource.Group, chartkind.Resource.Resource),
			},
			FailurePolicy:  admissionregistrationv1.Fail,
			TimeoutSeconds: timeoutSeconds,
			Conditions: []admissionregistrationv1.MatchCondition{
				{Name: "not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
				{Name: "owners", Expression: "has(object.metadata.ownerReferences) && (!has(oldObject.metadata.ownerReferences) || object.metadata.ownerReferences != oldObject.metadata.ownerReferences)"},
				{Name: "may-not-delete", Expression: "!authorizer.group(request.resource.group).resource(request.resource.resource).name(oldObject.metadata.name).check('delete').allowed()"},
			},
		},
	}
}

// judge refuses added owners. The host calls it only for users who cannot delete the object.
func judge(r webhook.Review) string {
	if r.Operation != admissionv1.Update || r.Object == nil || r.Old == nil || r.Old.Metadata.DeletionTimestamp != nil {
		return ""
	}
	for _, owner := range r.Object.Metadata.OwnerReferences {
		if !slices.Contains(r.Old.Metadata.OwnerReferences, owner) {
			return fmt.Sprintf("metadata.ownerReferences: %s is deleted when its owner is deleted, so adding the owner %s %q needs the right to delete it", r, owner.Kind, owner.Name)
		}
	}
	return ""
}
