package extension

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

func definitionName() string { return extension.Resource.GroupResource().String() }

func (c *Controller) watchDefinition(ctx context.Context) {
	objectwatch.WhileDefined(ctx, c.Clients.Definitions, definitionName(), func(bool) { c.setExtensions(nil) }, c.watchExtensions)
}

func (c *Controller) setExtensions(informer cache.SharedIndexInformer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extensions = informer
}

func (c *Controller) watchExtensions(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Extensions, c.Extensions.Resource(extension.Resource), &unstructured.Unstructured{}, objectwatch.InformerOptions{
		Keep: ctrlcache.TransformStripManagedFields(), Failed: objectwatch.NotServedYet, Indexers: cache.Indexers{byRequirement: requiredNames},
	})
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil && ctx.Err() == nil {
			c.queue.Add(key)
		}
	}
	related := func(before, now any) {
		was, _ := objectwatch.Told[*unstructured.Unstructured](before)
		is, _ := objectwatch.Told[*unstructured.Unstructured](now)
		c.addRelated(was, is)
	}
	// AddEventHandler cannot fail before the informer runs.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			c.noteOrphaning(object)
			if !initial {
				add(object)
				related(nil, object)
			}
		},
		UpdateFunc: func(before, now any) {
			c.noteOrphaning(now)
			if !c.needsRetry(before, now) {
				add(now)
			}
			related(before, now)
		},
		DeleteFunc: func(object any) {
			add(object)
			related(object, nil)
		},
	})
	c.setExtensions(informer)
	// Earlier passes would find nothing, and no event would repeat them.
	objectwatch.Follow(ctx, func() {
		for _, object := range informer.GetStore().List() {
			add(object)
		}
	}, informer)
}

// needsRetry reports whether an event only shows the status write of a failed attempt, so
// that the next attempt is scheduled already. Otherwise an error with an ever-changing text, for
// example with a request number, would cause attempts without end: each writes the status, and that
// write causes the next.
func (c *Controller) needsRetry(before, now any) bool {
	was, ok := before.(*unstructured.Unstructured)
	is, also := now.(*unstructured.Unstructured)
	return ok && also && c.queue.NumRequeues(is.GetName()) > 0 && was.GetUID() == is.GetUID() && was.GetGeneration() == is.GetGeneration() &&
		maps.Equal(was.GetAnnotations(), is.GetAnnotations()) && (was.GetDeletionTimestamp() == nil) == (is.GetDeletionTimestamp() == nil)
}

// find returns an extension, or nil if it does not exist. known is false while the informer has no
// answer.
func (c *Controller) find(name string) (object *unstructured.Unstructured, known bool) {
	return objectwatch.Find[*unstructured.Unstructured](c.informer(), name)
}

// informer returns the informer of extensions, or nil while the host does not serve the kind, or
// this is unknown.
func (c *Controller) informer() cache.SharedIndexInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.extensions
}

func (c *Controller) all() []*unstructured.Unstructured {
	return objectwatch.All[*unstructured.Unstructured](c.informer())
}

// watchRevisions enqueues the extension of each revision that is created, changed or deleted.
func (c *Controller) watchRevisions() error {
	add := func(object any) {
		revision, ok := objectwatch.Told[*olmv1alpha1.ClusterExtensionRevision](object)
		if !ok {
			return
		}
		name := revision.Labels[olmv1alpha1.ChainLabel]
		if found, known := c.find(name); known && found != nil {
			c.queue.Add(name)
		}
	}
	_, err := c.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add,
	})
	if err != nil {
		return fmt.Errorf("watching revisions for ClusterExtensions: %w", err)
	}
	return nil
}

// watchCatalogs enqueues the extensions whose package changed in the catalogs, and the extensions
// that wait for catalogs.
func (c *Controller) watchCatalogs(ctx context.Context) {
	before := c.Inventory.Snapshot()
	for {
		select {
		case <-ctx.Done():
			return
		case <-before.Outdated():
		}
		now := c.Inventory.Snapshot()
		packages := map[string]bool{}
		for _, name := range inventory.Changed(before, now) {
			packages[name] = true
		}
		for _, object := range c.all() {
			if packages[packageOf(object)] || c.waits(object.GetName()) || now.Complete() != before.Complete() {
				c.queue.Add(object.GetName())
			}
		}
		before = now
	}
}

func packageOf(object *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "source", "catalog", "packageName")
	return name
}

// forget drops the state of an extension that is deleted or being deleted.
func (c *Controller) forget(name string) {
	c.wait(name, false)
	c.noteWindowed(name, false)
	c.noteRequiring(name, nil)
	c.unfollow(name, nil)
	c.rendered.forget(name)
	c.jobs.Forget(name)
	c.jobs.Forget(reviewOf(name))
}

func (c *Controller) wait(name string, waits bool) { c.note(c.waiting, name, waits) }

// noteWindowed records whether an extension waits for a maintenance window.
func (c *Controller) noteWindowed(name string, waits bool) { c.note(c.windowed, name, waits) }

// note adds a name to a set of the controller, or removes it.
func (c *Controller) note(set map[string]bool, name string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		set[name] = true
		return
	}
	delete(set, name)
}

// waitFor is wait after a pass that used a snapshot. If the catalogs changed during the pass, the
// extension was not yet recorded as waiting, so it is enqueued.
func (c *Controller) waitFor(name string, known *inventory.Snapshot, waits bool) {
	c.wait(name, waits)
	if !waits {
		return
	}
	select {
	case <-known.Outdated():
		c.queue.Add(name)
	default:
	}
}

func (c *Controller) waits(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[name]
}
