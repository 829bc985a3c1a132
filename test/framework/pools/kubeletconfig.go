package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kubeletConfigs returns the resource whose objects become MachineConfigs.
func kubeletConfigs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "kubeletconfigs"}
}

// take creates a MachineConfig from each KubeletConfig for each pool that it selects, and writes
// its status. It deletes the MachineConfigs of deleted KubeletConfigs.
func (o *Operator) take(ctx context.Context, pools []unstructured.Unstructured) error {
	all, err := o.Client.Resource(kubeletConfigs()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the cluster does not serve KubeletConfigs
	}
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range all.Items {
		for j := range pools {
			if !selectsPool(&all.Items[i], &pools[j]) {
				continue
			}
			made, err := madeOf(&all.Items[i], &pools[j])
			if err != nil {
				return err
			}
			wanted[made.GetName()] = true
			if _, err := o.Client.Resource(configs()).Apply(ctx, made.GetName(), made, metav1.ApplyOptions{FieldManager: "machine-config-operator", Force: true}); err != nil {
				return err
			}
		}
		if err := o.taken(ctx, &all.Items[i]); err != nil {
			return err
		}
	}
	return o.collect(ctx, wanted)
}

func selectsPool(config, pool *unstructured.Unstructured) bool {
	var parsed metav1.LabelSelector
	raw, found, _ := unstructured.NestedMap(config.Object, "spec", "machineConfigPoolSelector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &parsed); err != nil || !found {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	return err == nil && selector.Matches(labels.Set(pool.GetLabels()))
}

// madeOf returns the MachineConfig of a KubeletConfig for a pool.
func madeOf(config, pool *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted, _, _ := unstructured.NestedMap(config.Object, "spec", "kubeletConfig")
	content, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding KubeletConfig %s: %w", config.GetName(), err)
	}
	selected, _, _ := unstructured.NestedMap(pool.Object, "spec", "machineConfigSelector", "matchLabels")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{
			"name": "99-" + pool.GetName() + "-generated-kubelet", "labels": selected,
			"ownerReferences": []any{map[string]any{
				"apiVersion": config.GetAPIVersion(), "kind": config.GetKind(), "name": config.GetName(), "uid": string(config.GetUID()),
			}},
		},
		"spec": map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{map[string]any{
			"path": "/etc/kubernetes/kubelet.conf", "mode": int64(0o644), "contents": map[string]any{"source": "data:," + url.PathEscape(string(content))},
		}}}}},
	}}, nil
}

// taken writes the success into the status of a KubeletConfig.
func (o *Operator) taken(ctx context.Context, config *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(config.Object, "status", "observedGeneration"); seen == config.GetGeneration() {
		return nil
	}
	config.Object["status"] = map[string]any{
		"observedGeneration": config.GetGeneration(), "conditions": []any{map[string]any{"type": "Success", "status": "True", "message": "Success"}},
	}
	_, err := o.Client.Resource(kubeletConfigs()).UpdateStatus(ctx, config, metav1.UpdateOptions{})
	return err
}

// collect deletes MachineConfigs of KubeletConfigs that are not wanted any more.
func (o *Operator) collect(ctx context.Context, wanted map[string]bool) error {
	all, err := o.Client.Resource(configs()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, config := range all.Items {
		for _, owner := range config.GetOwnerReferences() {
			if owner.Kind != "KubeletConfig" || wanted[config.GetName()] {
				continue
			}
			if err := o.Client.Resource(configs()).Delete(ctx, config.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
