package imagetemplate

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// watchDefinition watches the objects of a kind while the cluster serves it.
func (c *Controller) watchDefinition(ctx context.Context, kind annotated.Kind) {
	objectwatch.WhileDefined(ctx, c.Definitions, kind.Definition(), func(bool) { c.forgetAll(kind) },
		func(ctx context.Context) { c.watchObjects(ctx, kind) })
}

// watchObjects watches all objects of a kind. For objects without a template it keeps only the
// name.
func (c *Controller) watchObjects(ctx context.Context, kind annotated.Kind) {
	informer := objectwatch.NewInformer(c.Catalogs, c.Catalogs.Resource(kind.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Keep: keep, Failed: objectwatch.NotServedYet})
	changed := func(object any) {
		if ctx.Err() == nil {
			c.queue.Add(keyOf(kind, object))
		}
	}
	// AddEventHandler cannot fail before the informer runs.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	c.mu.Lock()
	c.informers[kind.Definition()] = informer
	c.mu.Unlock()
	informer.RunWithContext(ctx)
}

func keyOf(kind annotated.Kind, object any) key {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return key{definition: kind.Definition()}
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(name)
	return key{kind.Definition(), types.NamespacedName{Namespace: namespace, Name: name}}
}

func keep(kept any) (any, error) {
	object, is := kept.(*unstructured.Unstructured)
	if !is {
		return kept, nil
	}
	annotations := object.GetAnnotations()
	for name, types := range annotated.Annotations() {
		if annotations[name] != "" || annotated.HasAny(object, types) {
			return object, nil
		}
	}
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	bare.SetGroupVersionKind(object.GroupVersionKind())
	bare.SetName(object.GetName())
	bare.SetNamespace(object.GetNamespace())
	bare.SetUID(object.GetUID())
	bare.SetResourceVersion(object.GetResourceVersion())
	return bare, nil
}

// onlyIdentity keeps only the identity and resourceVersion of an object.
func onlyIdentity(kept any) (any, error) {
	if found, is := kept.(*metav1.PartialObjectMetadata); is {
		return &metav1.PartialObjectMetadata{TypeMeta: found.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: found.Name, Namespace: found.Namespace, UID: found.UID, ResourceVersion: found.ResourceVersion}}, nil
	}
	return kept, nil
}

// find returns an object, or nil if it does not exist. known is false before the first list.
func (c *Controller) find(k key) (object *unstructured.Unstructured, known bool) {
	c.mu.Lock()
	informer := c.informers[k.definition]
	c.mu.Unlock()
	if informer == nil {
		return nil, true
	}
	if !informer.HasSynced() {
		// The first events arrive before the informer reports that it has synced.
		if found, exists, err := informer.GetStore().GetByKey(storeKey(k)); err == nil && exists {
			object, _ = found.(*unstructured.Unstructured)
			return object, object != nil
		}
		return nil, false
	}
	found, exists, err := informer.GetStore().GetByKey(storeKey(k))
	if err != nil || !exists {
		return nil, err == nil
	}
	object, is := found.(*unstructured.Unstructured)
	return object, is
}

func storeKey(k key) string {
	return strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
}

// forgetAll drops the objects of a kind that was deleted or replaced.
func (c *Controller) forgetAll(kind annotated.Kind) {
	c.mu.Lock()
	delete(c.informers, kind.Definition())
	var gone []key
	for k := range c.needs {
		if k.definition == kind.Definition() {
			gone = append(gone, k)
		}
	}
	for k := range c.settled {
		if _, needs := c.needs[k]; k.definition == kind.Definition() && !needs {
			gone = append(gone, k)
		}
	}
	c.mu.Unlock()
	for _, k := range gone {
		c.forget(k)
	}
}

// watchDefinitions watches all definitions, to notice a new kind that a template needs.
func (c *Controller) watchDefinitions(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Definitions, c.Definitions.Resource(objectwatch.Definitions), &metav1.PartialObjectMetadata{},
		objectwatch.InformerOptions{Keep: onlyIdentity})
	changed := func(object any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if _, group, is := strings.Cut(name, "."); err == nil && is && ctx.Err() == nil {
			c.definitionChanged(group)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }})
	informer.RunWithContext(ctx)
}

// definitionChanged enqueues the objects that miss a kind of the group. A new kind is served only
// some time after its definition was created, so they retry for a while.
func (c *Controller) definitionChanged(group string) {
	const moments = 15 * time.Second
	c.mu.Lock()
	c.announced[group] = c.Clock.Now().Add(moments)
	var waiting []key
	for k, n := range c.needs {
		if n.missing[group] {
			waiting = append(waiting, k)
		}
	}
	c.mu.Unlock()
	c.requeue(waiting...)
}
