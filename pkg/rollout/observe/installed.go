package observe

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installed reports whether an installer of extensions has marked the object. Helm documents labels
// and annotations of these names, and OLM's operators set them. An ownerReference to a
// ClusterServiceVersion also shows that OLM installed it.
func (n Names) installed(live metav1.Object) bool {
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	if n.ChainLabel != "" && labels[n.ChainLabel] != "" || n.AppliedAnnotation != "" && annotations[n.AppliedAnnotation] != "" {
		return true
	}
	if labels["app.kubernetes.io/managed-by"] == "Helm" || annotations["meta.helm.sh/release-name"] != "" {
		return true
	}
	for _, label := range [...]string{"olm.owner", "olm.managed", "olm.operatorframework.io/owner-name", "olm.operatorframework.io/owner-kind"} {
		if labels[label] != "" {
			return true
		}
	}
	for label := range labels {
		// OLM labels each part of an operator: operators.coreos.com/<package>.<namespace>.
		if strings.HasPrefix(label, "operators.coreos.com/") {
			return true
		}
	}
	for _, owner := range live.GetOwnerReferences() {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if group == "operators.coreos.com" || group == "olm.operatorframework.io" {
			return true
		}
	}
	return false
}
