package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

func (c *Controller) watchDefinition(ctx context.Context) {
	objectwatch.WhileDefined(ctx, c.Definitions, clustercatalog.DefinitionName, func(defined bool) {
		if defined {
			return
		}
		c.mu.Lock()
		c.watching = nil
		c.mu.Unlock()
		c.forgetAll(ctx)
	}, c.watchCatalogs)
}

func (c *Controller) watchCatalogs(ctx context.Context) {
	watching := objectwatch.New(c.Catalogs, c.Catalogs.Resource(clustercatalog.Resource), &unstructured.Unstructured{},
		objectwatch.Options{Changed: func() {
			if ctx.Err() == nil {
				c.requeueAll()
			}
		}, Failed: func() {}}) // a kind is served only some time after its definition was created
	c.mu.Lock()
	c.watching = watching
	c.mu.Unlock()
	watching.Run(ctx)
}

// forgetAll removes all catalogs when the host stops serving ClusterCatalogs.
func (c *Controller) forgetAll(ctx context.Context) {
	defer c.Inventory.MarkComplete()
	c.mu.Lock()
	names := make([]string, 0, len(c.known))
	for name := range c.known {
		names = append(names, name)
	}
	for _, running := range c.pulls {
		running.cancel()
	}
	c.mu.Unlock()
	for _, name := range append(names, c.Indexes.Catalogs()...) {
		if err := c.forget(name); err != nil {
			klog.FromContext(ctx).Error(err, "A catalog that is gone could not be removed from disk", "catalog", name)
		}
	}
}

type owner int

const (
	// nobodyKnows means that the writer is unknown, so nothing is done yet.
	nobodyKnows owner = iota
	// weWrite means that Penstock writes, on the leader.
	weWrite
	catalogdWrites
)

// whoWrites returns the writer of ClusterCatalogs, and how long the answer is valid; 0 means until
// the lease changes.
//
// A restarting catalogd gives up its lease for a while, so a lease without a holder does not prove
// that catalogd was removed. Penstock writes only if the lease is deleted, or if TakeOver is set
// and catalogd does not hold the lease.
func (c *Controller) whoWrites() (owner, time.Duration) {
	if !c.SeesLeases {
		return catalogdWrites, 0
	}
	c.mu.Lock()
	leases := c.leases
	c.mu.Unlock()
	if leases == nil {
		return nobodyKnows, 0
	}
	found, err := leases.List()
	if err != nil {
		return nobodyKnows, 0 // the watch continues, and reports the answer
	}
	var held time.Duration
	for _, lease := range found {
		if lease.Name != clustercatalog.CatalogdLease || !slices.Contains(c.CatalogdNamespaces, lease.Namespace) {
			continue
		}
		if !c.TakeOver {
			return catalogdWrites, 0
		}
		holder, renewed, seconds := lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds
		if holder == nil || *holder == "" || renewed == nil || seconds == nil {
			continue
		}
		left := renewed.Add(time.Duration(*seconds) * time.Second).Sub(c.Clock.Now())
		held = max(held, left)
	}
	if held > 0 {
		return catalogdWrites, held + time.Second
	}
	return weWrite, 0
}

// requeueWhenOwnerChanged returns a callback for changes of the lease, which happen at each
// renewal by catalogd. It enqueues all catalogs only if the writer changed.
func (c *Controller) requeueWhenOwnerChanged() func() {
	var mu sync.Mutex
	last := nobodyKnows
	return func() {
		mu.Lock()
		defer mu.Unlock()
		now, _ := c.whoWrites()
		if now != last {
			last = now
			klog.Background().WithName("catalogs").Info("Found out who writes ClusterCatalogs", "who", now.String())
			c.requeueAll()
		}
	}
}

func (o owner) String() string {
	switch o {
	case weWrite:
		return "penstock"
	case catalogdWrites:
		return "catalogd"
	case nobodyKnows:
	}
	return fmt.Sprintf("unknown (%d)", int(o))
}
