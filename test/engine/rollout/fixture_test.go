//go:build integration

// Package rollout_test tests the rollout engine against a real kube-apiserver, with the real client
// and watches, without Penstock's API server. The tests store the chain's inventory, and write the
// status of workloads as controllers do. Only TestKill runs the program, with the same example and
// controllers.
package rollout_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

func names() observe.Names {
	return observe.Names{ChainLabel: "penstock.dev/chain", AppliedAnnotation: "penstock.dev/applied", TeardownAnnotation: "penstock.dev/teardown-policy", ManagerPrefix: "penstock/"}
}

// targetCluster is a cluster with other users and controllers.
type targetCluster struct {
	*cluster.Cluster
	t testing.TB
	// outsider makes changes that the engine does not make, and does the work of controllers.
	outsider dynamic.Interface
}

func start(t *testing.T) targetCluster {
	t.Helper()
	c := cluster.Start(t)
	outsider, err := dynamic.NewForConfig(c.User("outsider", "system:masters").Config())
	if err != nil {
		t.Fatal(err)
	}
	return targetCluster{Cluster: c, t: t, outsider: outsider}
}

// in returns the targetCluster for a subtest.
func (w targetCluster) in(t testing.TB) targetCluster {
	w.Cluster, w.t = w.Cluster.In(t), t
	return w
}

// resources returns the resources of the kinds that tests use.
func resources() map[string]schema.GroupVersionResource {
	core := schema.GroupVersion{Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"Namespace":                      core.WithResource("namespaces"),
		"ConfigMap":                      core.WithResource("configmaps"),
		"Secret":                         core.WithResource("secrets"),
		"Service":                        core.WithResource("services"),
		"PersistentVolumeClaim":          core.WithResource("persistentvolumeclaims"),
		"PriorityClass":                  {Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		"StorageClass":                   {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		"IngressClass":                   {Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
		"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		"Deployment":                     {Group: "apps", Version: "v1", Resource: "deployments"},
		"Job":                            {Group: "batch", Version: "v1", Resource: "jobs"},
		"APIService":                     {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		"ClusterRole":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		"CustomResourceDefinition":       {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	}
}

// at returns a client for the kind and namespace of a reference.
func (w targetCluster) at(ref manifest.ID) dynamic.ResourceInterface {
	resource, known := resources()[ref.Kind]
	if !known {
		// Any other kind is a custom resource of a test: see widgets.
		resource = schema.GroupVersionResource{Group: ref.Group, Version: "v1", Resource: strings.ToLower(ref.Kind) + "s"}
	}
	return w.outsider.Resource(resource).Namespace(ref.Namespace)
}

// get returns a live object, or nil.
func (w targetCluster) get(id manifest.ID) *unstructured.Unstructured {
	w.t.Helper()
	live, err := w.at(id).Get(context.Background(), id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("reading %s: %v", id, err)
	}
	return live
}

// serves reports whether the kind of an object is served. After the deletion of a definition,
// kube-apiserver needs a moment. Until then it only reports each object as not found.
func (w targetCluster) serves(id manifest.ID) bool {
	w.t.Helper()
	_, err := w.at(id).List(context.Background(), metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatalf("listing the kind of %s: %v", id, err)
	}
	return err == nil
}

// patch changes an object as another field manager.
func (w targetCluster) patch(id manifest.ID, as, patch string, subresources ...string) {
	w.t.Helper()
	_, err := w.at(id).Patch(context.Background(), id.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: as}, subresources...)
	if err != nil {
		w.t.Fatalf("patching %s: %v", id, err)
	}
}

// create creates an object of another user, and returns its UID.
func (w targetCluster) create(object map[string]any) types.UID {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: object}
	id := manifest.ID{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	made, err := w.at(id).Create(context.Background(), o, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		w.t.Fatalf("creating %s: %v", id, err)
	}
	return made.GetUID()
}

// remove deletes an object.
func (w targetCluster) remove(id manifest.ID) {
	w.t.Helper()
	if err := w.at(id).Delete(context.Background(), id.Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatalf("deleting %s: %v", id, err)
	}
}

// available writes the status of a Deployment as its controller does.
func (w targetCluster) available(live *unstructured.Unstructured) error {
	replicas, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": live.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}})
	if err != nil {
		return err
	}
	_, err = w.outsider.Resource(resources()["Deployment"]).Namespace(live.GetNamespace()).
		Patch(context.Background(), live.GetName(), types.MergePatchType, status, metav1.PatchOptions{FieldManager: "deployment-controller"}, "status")
	return err
}

// follow calls a function for every change of a kind until the test ends.
func (w targetCluster) follow(resource schema.GroupVersionResource, do func(*unstructured.Unstructured) error) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() {
		for ctx.Err() == nil {
			changes, err := w.outsider.Resource(resource).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				continue // the context has ended, or the server restarts
			}
			for change := range changes.ResultChan() {
				live, ok := change.Object.(*unstructured.Unstructured)
				if !ok || change.Type == watch.Deleted {
					continue
				}
				if err := do(live); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
					w.t.Errorf("acting for the controllers of %s: %v", resource.Resource, err)
				}
			}
		}
	})
}

// runControllers makes each Deployment available, except if its name begins with "slow".
func (w targetCluster) runControllers() {
	w.follow(resources()["Deployment"], func(live *unstructured.Unstructured) error {
		observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if observed == live.GetGeneration() || strings.HasPrefix(live.GetName(), "slow") {
			return nil
		}
		return w.available(live)
	})
}

// finalizeNamespaces finishes deleted namespaces. A real controller would first delete their
// objects. Here remaining objects are an error of the engine.
func (w targetCluster) finalizeNamespaces() {
	w.follow(resources()["Namespace"], func(live *unstructured.Unstructured) error {
		if live.GetDeletionTimestamp() == nil {
			return nil
		}
		for _, kind := range []string{"ConfigMap", "Secret", "Service", "Deployment"} {
			left, err := w.outsider.Resource(resources()[kind]).Namespace(live.GetName()).
				List(context.Background(), metav1.ListOptions{LabelSelector: names().ChainLabel})
			if err != nil {
				return err
			}
			for _, o := range left.Items {
				w.t.Errorf("the namespace %s was deleted before %s %s", live.GetName(), kind, o.GetName())
			}
		}
		if err := unstructured.SetNestedSlice(live.Object, []any{}, "spec", "finalizers"); err != nil {
			return err
		}
		_, err := w.outsider.Resource(resources()["Namespace"]).Update(context.Background(), live, metav1.UpdateOptions{}, "finalize")
		return err
	})
}

// ours lists the objects with the label of a chain, such as "ConfigMap a/x", of the kinds that
// tests use.
func (w targetCluster) ours(chain string, more ...schema.GroupVersionResource) []string {
	w.t.Helper()
	var found []string
	for _, resource := range append(slices.Collect(maps.Values(resources())), more...) {
		list, err := w.outsider.Resource(resource).List(context.Background(), metav1.ListOptions{LabelSelector: names().ChainLabel + "=" + chain})
		if err != nil {
			w.t.Fatalf("listing %s: %v", resource.Resource, err)
		}
		for _, o := range list.Items {
			found = append(found, idOf(&o).String())
		}
	}
	slices.Sort(found)
	return found
}

func idOf(o *unstructured.Unstructured) manifest.ID {
	return manifest.ID{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}
