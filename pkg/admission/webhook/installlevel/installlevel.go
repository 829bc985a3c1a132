// Package installlevel refuses invalid install levels on objects of the host, when a user writes
// them.
package installlevel

import (
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/manifest/release"
)

const (
	levelAnnotation      = release.InstallLevelAnnotation
	createOnlyAnnotation = release.CreateOnlyAnnotation

	timeoutSeconds = 2
)

// DefaultResources returns the resources that are checked by default.
func DefaultResources() []string { return []string{"config.openshift.io/*", "operator.openshift.io/*"} }

// Resource is a resource of a group, or all resources of a group.
type Resource struct{ Group, Resource string }

// ParseResource reads "config.openshift.io/*" or "apps/deployments"; the core group
// has no name: "/configmaps".
func ParseResource(text string) (Resource, error) {
	group, resource, ok := strings.Cut(text, "/")
	switch {
	case !ok || resource == "" || strings.Contains(resource, "/"):
		return Resource{}, fmt.Errorf("%q must be group/resource, such as config.openshift.io/* or /configmaps", text)
	case group == "*":
		return Resource{}, fmt.Errorf("%q: all groups would mean every write in the cluster: name the groups", text)
	case group == "olm.operatorframework.io" || group == "hco.kubevirt.io":
		return Resource{}, errors.New(group + " is served by Penstock itself, which checks the objects of revisions anyway")
	default:
		return Resource{group, resource}, nil
	}
}

// Webhook returns the webhook for the given resources.
func Webhook(resources []Resource) webhook.Webhook {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, r := range resources {
		rules = append(rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{"*"}, Resources: []string{r.Resource}, Scope: ptr.To(admissionregistrationv1.AllScopes)},
		})
	}
	in := func(object string) string {
		return fmt.Sprintf("(has(%[1]s.metadata.annotations) && '%[2]s' in %[1]s.metadata.annotations)", object, levelAnnotation)
	}
	return webhook.Webhook{
		Name:  "install-level",
		Judge: judge,
		Registration: webhook.Registration{
			Rules: rules,
			// The webhook only reports mistakes early, and the rollout checks again. So it fails
			// open: a write of the cluster's configuration must not depend on Penstock.
			FailurePolicy:  admissionregistrationv1.Ignore,
			TimeoutSeconds: timeoutSeconds,
			Conditions: []admissionregistrationv1.MatchCondition{
				{Name: "has-install-level", Expression: in("object")},
				{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"},
				{Name: "is-set-or-changed", Expression: "oldObject == null || !" + in("oldObject") +
					fmt.Sprintf(" || object.metadata.annotations['%[1]s'] != oldObject.metadata.annotations['%[1]s']", levelAnnotation)},
			},
		},
	}
}

// judge refuses a new or changed level that is not valid. A stored value may stay, so that the
// object can still be written and deleted.
func judge(r webhook.Review) string {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update ||
		r.SubResource != "" || r.Object == nil || r.Object.Metadata.DeletionTimestamp != nil {
		return ""
	}
	level, ok := r.Object.Metadata.Annotations[levelAnnotation]
	if !ok || r.Old != nil && string(r.Old.Metadata.Annotations[levelAnnotation]) == string(level) {
		return ""
	}
	if value, ok := release.Text(level); !ok || value != "0" && value != "1" {
		return fmt.Sprintf(`%s: annotation %s is %s, want "0" or "1"`, r, levelAnnotation, release.Shown(level))
	}
	if value, _ := release.Text(r.Object.Metadata.Annotations[createOnlyAnnotation]); value != "true" {
		return fmt.Sprintf(`%s: annotation %s is %s, which needs %s: "true" beside it`, r, levelAnnotation, release.Shown(level), createOnlyAnnotation)
	}
	return ""
}
