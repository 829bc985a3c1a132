// Package crdconflict finds CustomResourceDefinitions of the host with the name of one of our
// resources. OLM v1 has clusterextensionrevisions.olm.operatorframework.io in version v1.
// Kubernetes routes each version of a group separately, so both work side by side. But without a
// version, kubectl takes the preferred version: it shows the other resource instead of ours.
package crdconflict

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Definition returns the name of the definition that would conflict with a resource.
func Definition(resource schema.GroupResource) string { return resource.String() }

// Watch watches the CustomResourceDefinition that has the name of one of our resources.
type Watch struct {
	access kubernetes.Interface
	client dynamic.Interface
	ours   schema.GroupVersionResource
	gauge  *metrics.GaugeVec

	mu       sync.Mutex
	versions []string
}

// New returns a watch for definitions with the name of our resource. It registers its metric in
// registry. access checks the client's rights.
func New(access kubernetes.Interface, client dynamic.Interface, ours schema.GroupVersionResource, registry metrics.KubeRegistry) (*Watch, error) {
	w := &Watch{access: access, client: client, ours: ours, gauge: metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "penstock_resource_name_shared",
		Help:           "1 while a CustomResourceDefinition of the host serves a resource of the same group and name in another version: kubectl shows that resource unless the version of Penstock is given; else 0.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"resource"})}
	if err := registry.Register(w.gauge); err != nil {
		return nil, fmt.Errorf("registering the metric of shared names: %w", err)
	}
	w.gauge.WithLabelValues(ours.GroupResource().String()).Set(0)
	return w, nil
}

// Run watches until ctx ends. Without the right to watch, it logs that and returns.
func (w *Watch) Run(ctx context.Context) {
	name := Definition(w.ours.GroupResource())
	if !accessreview.MayWatch(ctx, w.access, definitions, "", name, "Notice other resources of the name "+name) {
		return
	}
	var watching *objectwatch.Watch[*unstructured.Unstructured]
	look := func() {
		found, err := watching.Get()
		switch {
		case err != nil:
		case found == nil:
			w.set(ctx, nil)
		default:
			w.found(ctx, found)
		}
	}
	watching = objectwatch.New(w.client, w.client.Resource(definitions), &unstructured.Unstructured{}, objectwatch.Options{Name: name, Changed: look})
	watching.Run(ctx)
}

// Warning returns the text of a warning header: the resource that kubectl shows instead of ours,
// and the name to type. It is empty without a conflict.
func (w *Watch) Warning() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.versions) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is also the name of a CustomResourceDefinition, in version %s, which kubectl prefers: use %s.%s.%s to see this resource",
		w.ours.GroupResource(), strings.Join(w.versions, " and "), w.ours.Resource, w.ours.Version, w.ours.Group)
}

func (w *Watch) found(ctx context.Context, object *unstructured.Unstructured) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &definition); err != nil {
		klog.FromContext(ctx).Error(err, "A CustomResourceDefinition cannot be read", "name", object.GetName())
		return
	}
	var others []string
	for _, version := range definition.Spec.Versions {
		// Kubernetes routes requests for our own version to us, whatever the definition contains.
		if version.Served && version.Name != w.ours.Version {
			others = append(others, version.Name)
		}
	}
	w.set(ctx, others)
}

// set stores the versions in which the other resource is served, and logs a change.
func (w *Watch) set(ctx context.Context, versions []string) {
	w.mu.Lock()
	changed := strings.Join(w.versions, " ") != strings.Join(versions, " ")
	w.versions = versions
	w.mu.Unlock()
	if !changed {
		return
	}
	log := klog.FromContext(ctx).WithName("names")
	if len(versions) == 0 {
		w.gauge.WithLabelValues(w.ours.GroupResource().String()).Set(0)
		log.Info("No other resource has the same name any more", "resource", w.ours.GroupResource().String())
		return
	}
	w.gauge.WithLabelValues(w.ours.GroupResource().String()).Set(1)
	log.Error(nil, "Another resource has the same name, and kubectl prefers it", "resource", w.ours.GroupResource().String(),
		"versions", versions, "to see ours", "kubectl get "+w.ours.Resource+"."+w.ours.Version+"."+w.ours.Group)
}
