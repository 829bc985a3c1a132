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

// watchDefinition watches the objects of a kind for as long as the cluster has it.
func (c *Controller) watchDefinition(ctx context.Context, kind annotated.Kind) {
	objectwatch.WhileDefined(ctx, c.Definitions, kind.Definition(), func(bool) { c.forgetAll(kind) },
		func(ctx context.Context) { c.watchObjects(ctx, kind) })
}

// watchObjects watches all objects of a kind. Of those without a template nothing is kept but
// the name.
func (c *Controller) watchObjects(ctx context.Context, kind annotated.Kind) {
	informer := objectwatch.NewInformer(c.Catalogs, c.Catalogs.Resource(kind.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Keep: keep, Failed: objectwatch.NotServedYet})
	changed := func(object any) {
		if ctx.Err() == nil {
			c.queue.Add(keyOf(kind, object))
		}
	}
	// An informer that has not run takes it.
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

// keep drops what nobody looks at.
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

// onlyIdentity keeps of an object which one it is, and whether it is another version of it.
func onlyIdentity(kept any) (any, error) {
	if found, is := kept.(*metav1.PartialObjectMetadata); is {
		return &metav1.PartialObjectMetadata{TypeMeta: found.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: found.Name, Namespace: found.Namespace, UID: found.UID, ResourceVersion: found.ResourceVersion}}, nil
	}
	return kept, nil
}

// find returns an object, nil when there is none. It is not known before the first list.
func (c *Controller) find(k key) (object *unstructured.Unstructured, known bool) {
	c.mu.Lock()
	informer := c.informers[k.definition]
	c.mu.Unlock()
	if informer == nil {
		return nil, true
	}
	if !informer.HasSynced() {
		// Its first events come before it says that it has all of them.
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

// forgetAll forgets the objects of a kind that is gone, or another one now.
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

// watchDefinitions watches all definitions, to see a kind come that a template needs.
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

// definitionChanged looks at those who miss a kind of a group. A defined kind is served some
// moments later: for a while they look again and again.
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
	c.lookAgain(waiting...)
}
