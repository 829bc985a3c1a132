package chartkind

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

const workloadGroup = "apps"

func workloadKinds() map[string]string {
	return map[string]string{report.Deployment: "deployments", report.StatefulSet: "statefulsets", report.DaemonSet: "daemonsets"}
}

func isWorkload(kind string) bool { return workloadKinds()[kind] != "" }

// workloads watches the workloads of all extensions, reduced to the fields that determine
// availability.
type workloads struct {
	client dynamic.Interface
	// changed is called with the chain of a changed workload.
	changed func(chain string)
	// begun is closed when a ChartKind needs the workloads.
	begun  chan struct{}
	once   sync.Once
	byKind map[string]cache.SharedIndexInformer
}

func newWorkloads(client dynamic.Interface, changed func(chain string)) *workloads {
	w := &workloads{client: client, changed: changed, begun: make(chan struct{}), byKind: map[string]cache.SharedIndexInformer{}}
	for kind, resource := range workloadKinds() {
		gvr := schema.GroupVersionResource{Group: workloadGroup, Version: "v1", Resource: resource}
		informer := objectwatch.NewInformer(client, labelled{client.Resource(gvr)}, &unstructured.Unstructured{}, objectwatch.InformerOptions{Keep: essentials})
		notify := func(object any) {
			if found, ok := objectwatch.Told[*unstructured.Unstructured](object); ok && found.GetLabels()[olmv1alpha1.ChainLabel] != "" {
				changed(found.GetLabels()[olmv1alpha1.ChainLabel])
			}
		}
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(before, now any) {
			if !sameEssentials(before, now) {
				notify(now)
			}
		}})
		w.byKind[kind] = informer
	}
	return w
}

// labelled lists and watches the objects of extensions.
type labelled struct{ dynamic.ResourceInterface }

func (l labelled) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	options.LabelSelector = olmv1alpha1.ChainLabel
	return l.ResourceInterface.List(ctx, options)
}

func (l labelled) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = olmv1alpha1.ChainLabel
	return l.ResourceInterface.Watch(ctx, options)
}

func (w *workloads) begin() { w.once.Do(func() { close(w.begun) }) }

// run watches the workloads from begin until ctx ends.
func (w *workloads) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-w.begun:
	}
	// A missing workload causes no event, and earlier looks did not know the workloads.
	objectwatch.Follow(ctx, func() { w.changed("") }, slices.Collect(maps.Values(w.byKind))...)
}

func (w *workloads) isKnown() bool {
	for _, informer := range w.byKind {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// find returns a workload of a chain, or nil. It ignores a workload with the label of another
// chain.
func (w *workloads) find(chain string, one report.Workload) *unstructured.Unstructured {
	object, _ := objectwatch.Find[*unstructured.Unstructured](w.byKind[one.Kind], one.Namespace+"/"+one.Name)
	if object == nil || object.GetLabels()[olmv1alpha1.ChainLabel] != chain {
		return nil
	}
	return object
}

// essentials returns the part of a workload that decides its availability: some hundred bytes.
func essentials(object any) (any, error) {
	found, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetAPIVersion(found.GetAPIVersion())
	out.SetKind(found.GetKind())
	out.SetNamespace(found.GetNamespace())
	out.SetName(found.GetName())
	out.SetUID(found.GetUID())
	out.SetResourceVersion(found.GetResourceVersion())
	out.SetGeneration(found.GetGeneration())
	out.SetDeletionTimestamp(found.GetDeletionTimestamp())
	out.SetLabels(map[string]string{olmv1alpha1.ChainLabel: found.GetLabels()[olmv1alpha1.ChainLabel]})
	for _, path := range [][]string{
		{"spec", "replicas"}, {"status", "observedGeneration"}, {"status", "availableReplicas"}, {"status", "desiredNumberScheduled"}, {"status", "numberAvailable"},
	} {
		if value, has, err := unstructured.NestedInt64(found.Object, path...); has && err == nil {
			_ = unstructured.SetNestedField(out.Object, value, path...)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["type"] != "Available"
	})
	for i, one := range conditions {
		fields := one.(map[string]any)
		conditions[i] = map[string]any{"type": fields["type"], "status": fields["status"]}
	}
	_ = unstructured.SetNestedSlice(out.Object, conditions, "status", "conditions")
	return out, nil
}

// sameEssentials reports whether the essentials of a workload are unchanged. Counters of an
// autoscaler and annotations cause no look.
func sameEssentials(before, now any) bool {
	was, ok := before.(*unstructured.Unstructured)
	is, also := now.(*unstructured.Unstructured)
	if !ok || !also {
		return false
	}
	a, b := runtime.DeepCopyJSON(was.Object), runtime.DeepCopyJSON(is.Object)
	unstructured.RemoveNestedField(a, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(b, "metadata", "resourceVersion")
	return reflect.DeepEqual(a, b)
}
