// Package pools simulates the Machine Config Operator. It renders MachineConfigs into their pools,
// and updates the simulated nodes in sequence. It sets the status in the real operator's order.
// Until a new configuration is rendered, a pool reports that it is updated to the previous
// configuration. A plan must not be misled by that.
package pools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// NodesAnnotation is the annotation of a pool with its number of nodes.
const NodesAnnotation = "test.penstock.dev/nodes"

// renderedPrefix is the prefix of the names of rendered configurations.
const renderedPrefix = "rendered-"

// Operator simulates the operator.
type Operator struct {
	// Client is the client of the cluster.
	Client dynamic.Interface
	// Step is the time between two changes.
	Step time.Duration
	// RenderDelay is the time between a change and its rendering.
	RenderDelay time.Duration
	// Held stops nodes from being updated.
	Held atomic.Bool

	changed map[string]time.Time
}

// configs returns the resource MachineConfigs.
func configs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigs"}
}

// Resource returns the API resource of pools.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigpools"}
}

// Run runs until ctx ends. Failed work is retried in the next step.
func (o *Operator) Run(ctx context.Context) {
	o.changed = map[string]time.Time{}
	ticker := time.NewTicker(o.Step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = o.step(ctx)
		}
	}
}

func (o *Operator) step(ctx context.Context) error {
	pools, err := o.Client.Resource(Resource()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := o.take(ctx, pools.Items); err != nil {
		return err
	}
	all, err := o.Client.Resource(configs()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := range pools.Items {
		if err := o.reconcile(ctx, &pools.Items[i], all.Items); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// reconcile renders a pool's configuration, or updates one of its nodes.
func (o *Operator) reconcile(ctx context.Context, pool *unstructured.Unstructured, all []unstructured.Unstructured) error {
	name, sources, content := o.render(pool, all)
	want, _, _ := unstructured.NestedString(pool.Object, "spec", "configuration", "name")
	if want != name {
		if since, known := o.changed[pool.GetName()+name]; !known {
			o.changed[pool.GetName()+name] = time.Now()
			return nil
		} else if time.Since(since) < o.RenderDelay && want != "" {
			return nil
		}
		return o.target(ctx, pool, name, sources, content)
	}
	return o.progress(ctx, pool, name, sources)
}

// render merges the MachineConfigs that a pool selects.
func (o *Operator) render(pool *unstructured.Unstructured, all []unstructured.Unstructured) (name string, sources []any, content map[string]any) {
	var parsed metav1.LabelSelector
	raw, _, _ := unstructured.NestedMap(pool.Object, "spec", "machineConfigSelector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &parsed); err != nil {
		return "", nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return "", nil, nil
	}
	var arguments, files []any
	for _, config := range all {
		if strings.HasPrefix(config.GetName(), renderedPrefix) || !selector.Matches(labels.Set(config.GetLabels())) {
			continue
		}
		sources = append(sources, map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": config.GetName()})
		own, _, _ := unstructured.NestedSlice(config.Object, "spec", "kernelArguments")
		arguments = append(arguments, own...)
		own, _, _ = unstructured.NestedSlice(config.Object, "spec", "config", "storage", "files")
		files = append(files, own...)
	}
	content = map[string]any{"kernelArguments": arguments}
	if len(files) > 0 {
		content["config"] = map[string]any{"storage": map[string]any{"files": files}}
	}
	sum := sha256.Sum256(fmt.Append(nil, content))
	return renderedPrefix + pool.GetName() + "-" + hex.EncodeToString(sum[:8]), sources, content
}

// target sets another configuration for a pool.
func (o *Operator) target(ctx context.Context, pool *unstructured.Unstructured, name string, sources []any, content map[string]any) error {
	rendered := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": map[string]any{"name": name},
		"spec": content,
	}}
	if _, err := o.Client.Resource(configs()).Create(ctx, rendered, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pool = pool.DeepCopy()
	if err := unstructured.SetNestedMap(pool.Object, map[string]any{"name": name, "source": sources}, "spec", "configuration"); err != nil {
		return err
	}
	_, err := o.Client.Resource(Resource()).Update(ctx, pool, metav1.UpdateOptions{})
	return err
}

// progress updates one more node, and always the status.
func (o *Operator) progress(ctx context.Context, pool *unstructured.Unstructured, name string, sources []any) error {
	pool = pool.DeepCopy()
	var total int64
	// An invalid value means no nodes.
	_, _ = fmt.Sscan(pool.GetAnnotations()[NodesAnnotation], &total)
	have, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
	going, _, _ := unstructured.NestedString(pool.Object, "metadata", "annotations", "test.penstock.dev/going")
	updated, _, _ := unstructured.NestedInt64(pool.Object, "status", "updatedMachineCount")
	paused, _, _ := unstructured.NestedBool(pool.Object, "spec", "paused")
	if going != name {
		annotations := pool.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["test.penstock.dev/going"] = name
		pool.SetAnnotations(annotations)
		fresh, err := o.Client.Resource(Resource()).Update(ctx, pool, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		switch pool = fresh; have {
		case "":
			updated = total
		case name:
			// The pool returns to its old configuration before the update was complete. Nodes that
			// were not updated yet need no update.
			updated = total - updated
		default:
			updated = 0
		}
	} else if updated < total && !paused && !o.Held.Load() {
		updated = min(total, updated+1)
	}
	all := updated == total
	status := map[string]any{
		"machineCount": total, "updatedMachineCount": updated, "readyMachineCount": updated,
		"unavailableMachineCount": int64(0), "degradedMachineCount": int64(0), "observedGeneration": pool.GetGeneration(),
	}
	old, _, _ := unstructured.NestedMap(pool.Object, "status", "configuration")
	status["configuration"] = old
	if all {
		// The status names the new configuration only when all nodes are updated.
		status["configuration"] = map[string]any{"name": name, "source": sources}
	}
	truth := func(value bool) string {
		if value {
			return "True"
		}
		return "False"
	}
	conditions := []any{}
	for kind, value := range map[string]bool{"Updated": all, "Updating": !all && !paused, "Degraded": false, "NodeDegraded": false, "RenderDegraded": false} {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": truth(value), "reason": "", "message": "", "lastTransitionTime": pool.GetCreationTimestamp().UTC().Format(time.RFC3339),
		})
	}
	slices.SortFunc(conditions, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
	})
	status["conditions"] = conditions
	if status["configuration"] == nil {
		delete(status, "configuration")
	}
	before, _, _ := unstructured.NestedMap(pool.Object, "status")
	if fmt.Sprint(before) == fmt.Sprint(status) {
		return nil
	}
	pool.Object["status"] = status
	_, err := o.Client.Resource(Resource()).UpdateStatus(ctx, pool, metav1.UpdateOptions{})
	return err
}
