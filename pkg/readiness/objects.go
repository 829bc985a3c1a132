package readiness

import (
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	budgetKind     = "PodDisruptionBudget"
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

func isBudget(id manifest.ID) bool { return id.Kind == budgetKind && id.Group == policyv1.GroupName }

func isWebhooks(id manifest.ID) bool {
	return (id.Kind == mutatingKind || id.Kind == validatingKind) && id.Group == admissionregistrationv1.GroupName
}

// objects judges manifests by their content. It skips a manifest that does not parse:
// kube-apiserver judges it.
func (j *Judge) objects(one *Extension, revision *Revision, seen map[string]int) {
	for i := range revision.Objects {
		object := &revision.Objects[i]
		found, ok := v1alpha1.UpgradeFinding{}, false
		switch {
		case len(object.JSON) == 0:
		case isBudget(object.ID):
			found, ok = budget(object, revision.Objects)
			if now, known := j.live.Budgets[object.ID]; known {
				found, ok = now.now(found, ok)
			}
		case isWebhooks(object.ID):
			if found, ok = webhooks(object); ok {
				found = unanswered(found, j.live.Webhooks[object.ID])
			}
		}
		if ok {
			j.find(about(found, one, revision, object), seen)
		}
	}
}

// budget finds a PodDisruptionBudget that allows no eviction, so that a node cannot be drained.
func budget(object *manifest.Object, all []manifest.Object) (v1alpha1.UpgradeFinding, bool) {
	var read struct {
		Spec policyv1.PodDisruptionBudgetSpec `json:"spec"`
	}
	if json.Unmarshal(object.JSON, &read) != nil {
		return v1alpha1.UpgradeFinding{}, false
	}
	found := v1alpha1.UpgradeFinding{
		Severity: v1alpha1.UpgradeActBefore, Certainty: v1alpha1.UpgradeCertain,
		Fix: fmt.Sprintf("kubectl get pdb %s -n %s -o wide", object.ID.Name, object.Namespace),
	}
	const blocked = ": it allows no eviction, so nodes with its Pods cannot be drained"
	if most := read.Spec.MaxUnavailable; most != nil {
		found.Field, found.Evidence = "spec.maxUnavailable", "maxUnavailable is "+most.String()+blocked
		n, err := intstr.GetScaledValueFromIntOrPercent(most, 100, true)
		return found, err == nil && n == 0
	}
	least := read.Spec.MinAvailable
	if least == nil {
		return v1alpha1.UpgradeFinding{}, false
	}
	found.Field, found.Evidence = "spec.minAvailable", "minAvailable is "+least.String()+blocked
	if n, err := intstr.GetScaledValueFromIntOrPercent(least, 100, true); err != nil || least.Type == intstr.String && n >= 100 {
		return found, err == nil
	}
	replicas, stated := replicasOf(object.Namespace, read.Spec.Selector, all)
	if replicas == 0 {
		return v1alpha1.UpgradeFinding{}, false
	}
	if !stated {
		found.Certainty = v1alpha1.UpgradeGuess
	}
	found.Evidence = fmt.Sprintf("minAvailable is %s of %d%s", least.String(), replicas, blocked)
	n, err := intstr.GetScaledValueFromIntOrPercent(least, replicas, true)
	return found, err == nil && n >= replicas
}

// replicasOf returns the number of Pods that a budget selects in a revision's workloads. stated is
// false if a workload does not set replicas, since an autoscaler may set them.
func replicasOf(namespace string, selector *metav1.LabelSelector, all []manifest.Object) (replicas int, stated bool) {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return 0, false
	}
	stated = true
	for i := range all {
		object := &all[i]
		if object.Namespace != namespace || object.Kind != "Deployment" && object.Kind != "StatefulSet" || len(object.JSON) == 0 {
			continue
		}
		var workload struct {
			Spec struct {
				Replicas *int `json:"replicas"`
				Template struct {
					Metadata metav1.ObjectMeta `json:"metadata"`
				} `json:"template"`
			} `json:"spec"`
		}
		if json.Unmarshal(object.JSON, &workload) != nil || !selects.Matches(labels.Set(workload.Spec.Template.Metadata.Labels)) {
			continue
		}
		if workload.Spec.Replicas == nil {
			stated = false
			replicas++
			continue
		}
		replicas += *workload.Spec.Replicas
	}
	return replicas, stated
}

// webhooks finds webhooks that refuse requests when their server does not answer.
func webhooks(object *manifest.Object) (v1alpha1.UpgradeFinding, bool) {
	var read struct {
		Webhooks []struct {
			Name          string  `json:"name"`
			FailurePolicy *string `json:"failurePolicy"`
		} `json:"webhooks"`
	}
	if json.Unmarshal(object.JSON, &read) != nil {
		return v1alpha1.UpgradeFinding{}, false
	}
	for i, hook := range read.Webhooks {
		// In v1beta1 the default is Ignore.
		fails := hook.FailurePolicy == nil && object.APIVersion() == admissionregistrationv1.SchemeGroupVersion.String()
		if fails || hook.FailurePolicy != nil && *hook.FailurePolicy == string(admissionregistrationv1.Fail) {
			return v1alpha1.UpgradeFinding{
				Severity: v1alpha1.UpgradeLook, Certainty: v1alpha1.UpgradeGuess, Field: fmt.Sprintf("webhooks[%d].failurePolicy", i),
				Evidence: fmt.Sprintf("webhook %s has failurePolicy Fail: while nodes are drained and its Pods are away, requests that it is for are refused", hook.Name),
				Fix:      fmt.Sprintf("kubectl get %s.%s %s -o yaml", object.Kind, object.GroupKind().Group, object.ID.Name),
			}, true
		}
	}
	return v1alpha1.UpgradeFinding{}, false
}
