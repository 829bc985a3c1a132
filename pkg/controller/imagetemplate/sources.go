package imagetemplate

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// needs lists the changes that concern an object's templates.
type needs struct {
	// version is true if a template uses a well-known variable.
	version bool
	// objects holds the named objects whose kinds are served.
	objects map[imagetemplate.Object]lookup.Resource
	// missing holds the groups of kinds that are not served.
	missing map[string]bool
}

// source is an object that templates name. It is watched by name, with metadata only, to notice
// changes. Its content is read separately for each author.
type source struct {
	resource lookup.Resource
	stop     context.CancelFunc
}

// need starts the watches that an object needs, and stops the unused watches. The watches end with
// ctx.
func (c *Controller) need(ctx context.Context, k key, n needs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs[k] = n
	used, version, missing := map[imagetemplate.Object]lookup.Resource{}, false, false
	for _, one := range c.needs {
		maps.Copy(used, one.objects)
		version = version || one.version
		missing = missing || len(one.missing) > 0
	}
	for object, found := range c.sources {
		if resource, is := used[object]; !is || resource != found.resource {
			found.stop()
			delete(c.sources, object)
		}
	}
	for object, resource := range used {
		if c.sources[object] == nil {
			c.sources[object] = c.watchSource(ctx, object, resource)
		}
	}
	c.version.use(version)
	switch {
	case missing && c.definitions == nil:
		var watchCtx context.Context
		watchCtx, c.definitions = context.WithCancel(ctx)
		c.running.Go(func() { c.watchDefinitions(watchCtx) })
	case !missing && c.definitions != nil:
		c.definitions()
		c.definitions = nil
	}
}

// forget stops the watches of an object without a template.
func (c *Controller) forget(k key) {
	c.mu.Lock()
	_, needed := c.needs[k]
	c.mu.Unlock()
	if needed {
		c.need(context.Background(), k, needs{}) // no watch starts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.needs, k)
	delete(c.settled, k)
	delete(c.unsettled, k)
	delete(c.behind, k)
	delete(c.states, k)
}

// watchSource watches one object. The caller holds mu.
func (c *Controller) watchSource(ctx context.Context, object imagetemplate.Object, resource lookup.Resource) *source {
	ctx, stop := context.WithCancel(ctx)
	watching := objectwatch.New(c.Objects, c.Objects.Resource(resource.GroupVersionResource).Namespace(object.Namespace), &metav1.PartialObjectMetadata{}, objectwatch.Options{
		Name: object.Name,
		Changed: func() {
			if ctx.Err() == nil {
				c.sourceChanged(object)
			}
		},
		// Without the right, the watch is retried with growing delays, because the right may be
		// granted later.
		Failed: func() {},
		Keep:   onlyIdentity,
	})
	c.running.Go(func() { watching.Run(ctx) })
	return &source{resource: resource, stop: stop}
}

func (c *Controller) sourceChanged(object imagetemplate.Object) {
	c.mu.Lock()
	var users []key
	for k, n := range c.needs {
		if _, is := n.objects[object]; is {
			users = append(users, k)
		}
	}
	c.mu.Unlock()
	c.requeue(users...)
}

func (c *Controller) versionChanged() {
	c.mu.Lock()
	var users []key
	for k, n := range c.needs {
		if n.version {
			users = append(users, k)
		}
	}
	c.mu.Unlock()
	c.requeue(users...)
}

// resourceOf returns the resource of an object, from an earlier lookup if possible.
func (c *Controller) resourceOf(ctx context.Context, object imagetemplate.Object) (lookup.Resource, error) {
	c.mu.Lock()
	known := c.sources[object]
	c.mu.Unlock()
	if known != nil {
		return known.resource, nil
	}
	return c.Reader.Find(ctx, object)
}
