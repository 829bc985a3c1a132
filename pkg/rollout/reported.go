package rollout

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// guards returns the API groups whose objects are always repaired, also in their subgroups. These
// objects decide about permissions and admission.
func guards() []string {
	return []string{
		"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io",
		"authorization.openshift.io", "security.openshift.io", "user.openshift.io", "oauth.openshift.io", "security.istio.io",
		"gatekeeper.sh", "kyverno.io", "policies.kubewarden.io",
	}
}

// guardKinds returns suffixes of kinds, in all groups, whose objects are always repaired, such as
// NetworkPolicy and RoleBinding. Namespaces are included because their labels can protect objects.
func guardKinds() []string {
	return []string{"Role", "RoleBinding", "Policy", "PolicyBinding", "WebhookConfiguration", "Namespace"}
}

// isGuard reports whether drift of an object is always repaired, even if drift is only to be
// reported.
func isGuard(id manifest.ID) bool {
	of := func(group string) bool { return id.Group == group || strings.HasSuffix(id.Group, "."+group) }
	return slices.ContainsFunc(guards(), of) || slices.ContainsFunc(guardKinds(), func(end string) bool { return strings.HasSuffix(id.Kind, end) })
}

// reportsDrift reports whether drift of the object is reported and not repaired.
func (o *object) reportsDrift(ctx context.Context) (bool, error) {
	if !o.ReportDrift || o.memo == nil || o.memo.Intent() || isGuard(o.step.ID) {
		return false, nil
	}
	protected, err := o.isProtected(ctx, o.step.Namespace)
	return err == nil && !protected, err
}

// drifted returns the result for an object whose drift is reported. The object counts as applied:
// its probes decide whether it works.
func (o *object) drifted(seen Seen, lost string) objectResult {
	if lost == "" {
		lost = "the marks of the extension"
	}
	return objectResult{outcome: outcome{applied: true, drift: &Failure{Ref: o.step.Ref, Reason: ReasonDriftReported, Message: lost}}, seen: seen}
}

// absent returns the result for a deleted object that is not created again because drift is only
// reported.
func (o *object) absent(seen Seen) objectResult {
	result := o.refuse(seen, ReasonDriftReported, false, "was deleted, and is not created again while drift is reported")
	result.drift = result.failure
	return result
}
