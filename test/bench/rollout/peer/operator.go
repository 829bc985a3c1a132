package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"sync"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/penstock-project/penstock/test/bench/rollout/order"
)

const operatorWorkers = 2

// operator installs each Central as a release, as helm-operator does, with Helm's SDK. A pass reads
// the release and renders the chart in a dry-run upgrade. If the manifest is unchanged, it reads
// every object and repairs differences. Then it writes the status. Changes of the custom resource's
// generation and of its workloads start a pass. The operator saves requests: it reads workloads,
// custom resources and served kinds from caches, and writes only a changed status, which starts no
// pass.
type operator struct {
	*helm
	chart     *chart.Chart
	client    dynamic.Interface
	resources cache.SharedIndexInformer
	workloads []cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[string]
}

var centrals = schema.GroupVersionResource{Group: "platform.stackrox.io", Version: "v1alpha1", Resource: "centrals"}

func runOperator(ctx context.Context, config *rest.Config, folder string, in io.Reader) error {
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	sdk, err := newHelm(config)
	if err != nil {
		return err
	}
	o := &operator{helm: sdk, chart: loaded, client: client, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer o.queue.ShutDown()
	defer cancel()
	if err := o.watch(ctx); err != nil {
		return err
	}
	for range operatorWorkers {
		running.Go(func() { o.work(ctx) })
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func (o *operator) watch(ctx context.Context) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(o.client, 0)
	o.resources = factory.ForResource(centrals).Informer()
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			o.queue.Add(key)
		}
	}
	_, err := o.resources.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(before, now any) {
		was, is := before.(*unstructured.Unstructured), now.(*unstructured.Unstructured)
		if was.GetGeneration() != is.GetGeneration() {
			add(now)
		}
	}})
	if err != nil {
		return err
	}
	for _, resource := range []string{"deployments", "statefulsets", "daemonsets"} {
		informer := factory.ForResource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}).Informer()
		wake := func(object any) {
			if found, ok := object.(*unstructured.Unstructured); ok && releaseOf(found) != "" {
				o.queue.Add(releaseOf(found))
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake})
		if err != nil {
			return err
		}
		o.workloads = append(o.workloads, informer)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// releaseOf returns the release in Helm's annotations on an object, as namespace/name.
func releaseOf(object *unstructured.Unstructured) string {
	notes := object.GetAnnotations()
	if notes["meta.helm.sh/release-name"] == "" {
		return ""
	}
	return notes["meta.helm.sh/release-namespace"] + "/" + notes["meta.helm.sh/release-name"]
}

func (o *operator) work(ctx context.Context) {
	for {
		key, shutdown := o.queue.Get()
		if shutdown {
			return
		}
		if err := o.pass(ctx, key); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "peer: Central %s: %v\n", key, err)
			o.queue.AddRateLimited(key)
		} else {
			o.queue.Forget(key)
		}
		o.queue.Done(key)
	}
}

func (o *operator) pass(ctx context.Context, key string) error {
	kept, exists, err := o.resources.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	central := kept.(*unstructured.Unstructured)
	configuration, err := o.configuration(central.GetNamespace())
	if err != nil {
		return err
	}
	// helm-operator uses the spec as values.
	values, _, err := unstructured.NestedMap(central.Object, "spec")
	if err != nil {
		return err
	}
	if err := o.roll(ctx, configuration, central, values); err != nil {
		return err
	}
	return o.report(ctx, central)
}

func (o *operator) roll(ctx context.Context, configuration *action.Configuration, central *unstructured.Unstructured, values map[string]any) error {
	of := order.Release{Name: central.GetName(), Namespace: central.GetNamespace()}
	current, err := manifestOf(action.NewGet(configuration).Run(of.Name))
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return install(ctx, configuration, of, o.chart, values)
	}
	if err != nil {
		return fmt.Errorf("reading the release: %w", err)
	}
	dry := action.NewUpgrade(configuration)
	dry.Namespace, dry.Timeout, dry.DryRunStrategy, dry.ServerSideApply = of.Namespace, timeout, action.DryRunClient, "true"
	wanted, err := manifestOf(dry.RunWithContext(ctx, of.Name, o.chart, maps.Clone(values)))
	if err != nil {
		return fmt.Errorf("upgrading as a dry-run: %w", err)
	}
	if wanted != current {
		return upgrade(ctx, configuration, of, o.chart, values)
	}
	return reconcile(configuration, current)
}

func manifestOf(made release.Releaser, err error) (string, error) {
	if err != nil {
		return "", err
	}
	accessor, err := release.NewAccessor(made)
	if err != nil {
		return "", err
	}
	return accessor.Manifest(), nil
}

func (o *operator) report(ctx context.Context, central *unstructured.Unstructured) error {
	ready := "False"
	if o.isReady(central) {
		ready = "True"
	}
	now := map[string]any{
		"observedGeneration": central.GetGeneration(), "reconciledVersion": o.chart.Metadata.Version,
		"conditions": []any{
			condition("Deployed", "True", "UpgradeSuccessful"), condition("Ready", ready, "Workloads"), condition("Progressing", "False", "ReconcileSuccessful"),
		},
	}
	if stored, _, _ := unstructured.NestedMap(central.Object, "status"); reflect.DeepEqual(stored, now) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": now})
	if err == nil {
		_, err = o.client.Resource(centrals).Namespace(central.GetNamespace()).
			Patch(ctx, central.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "operator"}, "status")
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func (o *operator) isReady(central *unstructured.Unstructured) bool {
	count := 0
	for _, informer := range o.workloads {
		all, _ := informer.GetIndexer().ByIndex(cache.NamespaceIndex, central.GetNamespace()) // the factory creates this index
		for _, kept := range all {
			workload := kept.(*unstructured.Unstructured)
			if releaseOf(workload) != central.GetNamespace()+"/"+central.GetName() {
				continue
			}
			if count++; !isAvailable(workload) {
				return false
			}
		}
	}
	return count > 0
}

func isAvailable(workload *unstructured.Unstructured) bool {
	number := func(path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(workload.Object, path...)
		return value
	}
	switch workload.GetKind() {
	case "StatefulSet":
		return number("status", "availableReplicas") >= number("spec", "replicas")
	case "DaemonSet":
		return number("status", "numberAvailable") >= number("status", "desiredNumberScheduled")
	}
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, ok := one.(map[string]any); ok && fields["type"] == "Available" {
			return fields["status"] == "True"
		}
	}
	return false
}
