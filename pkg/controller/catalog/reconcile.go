package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/image"
)

// reconcile reconciles one catalog. It returns the delay before the next pass; 0 waits for a
// change.
//
//  1. It reads the object, and does nothing while that is unknown.
//  2. It forgets a deleted catalog, and does not serve a catalog that is being deleted or switched
//     off.
//  3. It finds out who resolves the image: this replica, another replica, or catalogd.
//  4. It makes the content of that image, and writes the status.
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	object, err := c.find(name)
	if err != nil {
		return 0, nil //nolint:nilerr // the watch continues, and reports the answer
	}
	if object == nil {
		return 0, c.forget(name)
	}
	catalog, err := clustercatalog.From(object)
	if err != nil {
		return 0, err
	}
	who, sure := c.whoWrites()
	if who == nobodyKnows {
		return 0, nil
	}
	write := who == weWrite && c.leading.Load()
	k := c.entryOf(catalog)
	switch {
	case catalog.DeletionTimestamp != nil:
		return sure, c.release(ctx, object, catalog, k, write)
	case catalog.Off():
		return sure, c.switchOff(ctx, object, catalog, k, write)
	case who == catalogdWrites:
		return soonest(sure, c.read(ctx, catalog, k)), nil
	case !write:
		return c.follow(ctx, catalog, k), nil
	}
	again := c.decide(ctx, catalog, k)
	if ctx.Err() != nil {
		return 0, nil
	}
	return again, c.writeStatus(ctx, object, catalog, k)
}

// soonest returns the earlier of two delays; 0 means never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// release stops serving a catalog that is being deleted. It also removes the finalizer of a removed
// catalogd, which would keep the catalog forever.
func (c *Controller) release(ctx context.Context, object *unstructured.Unstructured, catalog *clustercatalog.Catalog, k *known, write bool) error {
	c.drop(k)
	if err := c.forget(catalog.Name); err != nil {
		return err
	}
	if !write {
		return nil
	}
	return c.removeFinalizer(ctx, object)
}

func (c *Controller) switchOff(ctx context.Context, object *unstructured.Unstructured, catalog *clustercatalog.Catalog, k *known, write bool) error {
	c.endPull(catalog.Name)
	c.drop(k)
	c.publish(catalog, k)
	if err := c.Indexes.Remove(catalog.Name); err != nil {
		return err
	}
	if err := c.collect(); err != nil {
		return err
	}
	if !write {
		return nil
	}
	return c.writeStatus(ctx, object, catalog, k)
}

// decide resolves the image of a catalog, and uses it.
func (c *Controller) decide(ctx context.Context, catalog *clustercatalog.Catalog, k *known) time.Duration {
	if k.ref == "" && k.generation == 0 {
		c.resume(catalog, k)
	}
	c.publish(catalog, k) // a pull may take long
	if c.due(catalog, k) {
		made, err := c.fetch(ctx, catalog, catalog.Ref())
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, errOutdated):
			return 0 // another attempt is scheduled
		case err != nil:
			c.fail(k, catalog.Generation, err, terminal(err, catalog.Ref()))
			klog.FromContext(ctx).Error(err, "A catalog could not be pulled", "catalog", catalog.Name, "image", catalog.Ref(), "blocked", k.blocked, "inUse", k.ref)
		default:
			c.replace(ctx, catalog, k, made, c.unpackedAt(k, made))
			c.succeed(k, catalog.Generation)
		}
	}
	c.publish(catalog, k)
	return c.nextLook(catalog, k)
}

// replace switches to new content, and releases the old one.
func (c *Controller) replace(ctx context.Context, catalog *clustercatalog.Catalog, k *known, made *made, unpacked time.Time) {
	before := k.ref
	c.use(k, made, unpacked)
	made.release()
	if before == made.ref {
		return
	}
	klog.FromContext(ctx).Info("A catalog is in use", "catalog", catalog.Name, "image", made.ref, "packages", len(made.index.Packages()), "before", before)
	if err := c.collect(); err != nil {
		klog.FromContext(ctx).Error(err, "Disk space could not be freed")
	}
}

// unpackedAt returns the time at which content was unpacked. Clients compare it to detect changes,
// so new content always has a later time than the content before.
func (c *Controller) unpackedAt(k *known, made *made) time.Time {
	if k.digest() == digestOf(made.ref) && !k.unpacked.IsZero() {
		return k.unpacked
	}
	now := c.Clock.Now().Truncate(time.Second)
	if !now.After(k.unpacked) {
		now = k.unpacked.Add(time.Second)
	}
	return now
}

// resume uses the content that the status names and that is on disk, so that a restart needs no
// registry.
func (c *Controller) resume(catalog *clustercatalog.Catalog, k *known) {
	ref := catalog.Resolved()
	if ref == "" {
		return
	}
	made := c.onDisk(catalog.Name, ref)
	if made == nil {
		return
	}
	unpacked := made.content.Made()
	if catalog.Status.LastUnpacked != nil {
		unpacked = catalog.Status.LastUnpacked.Time
	}
	c.use(k, made, unpacked)
	if catalog.Done() {
		c.mu.Lock()
		k.generation, k.polled = catalog.Generation, c.Clock.Now()
		c.mu.Unlock()
	}
}

// due reports whether the image must be resolved now.
func (c *Controller) due(catalog *clustercatalog.Catalog, k *known) bool {
	now := c.Clock.Now()
	switch {
	case k.generation != catalog.Generation:
		return true
	case k.blocked:
		return false
	case k.err != nil:
		return !now.Before(k.retry)
	case k.content == nil:
		return true // only the index was read, from a removed catalogd
	}
	return catalog.Poll() > 0 && !now.Before(k.polled.Add(catalog.Poll()))
}

// nextLook returns the delay before the next pass, if no event arrives earlier.
func (c *Controller) nextLook(catalog *clustercatalog.Catalog, k *known) time.Duration {
	now := c.Clock.Now()
	switch {
	case k.blocked:
		return 0
	case k.err != nil:
		return max(k.retry.Sub(now), time.Millisecond)
	case catalog.Poll() > 0:
		return max(k.polled.Add(catalog.Poll()).Sub(now), time.Millisecond)
	}
	return 0
}

// follow uses the content that the status names, because another replica resolves it.
func (c *Controller) follow(ctx context.Context, catalog *clustercatalog.Catalog, k *known) time.Duration {
	ref := catalog.Resolved()
	if ref == "" {
		c.drop(k)
		c.publish(catalog, k)
		return 0
	}
	if k.ref == "" {
		c.resume(catalog, k)
	}
	wait := time.Duration(0)
	switch {
	case k.ref == ref && k.content != nil:
	case k.err != nil && c.Clock.Now().Before(k.retry) && k.generation == catalog.Generation:
		wait = k.retry.Sub(c.Clock.Now())
	default:
		wait = c.pullResolved(ctx, catalog, k, ref)
	}
	if k.ref == ref && k.content != nil {
		c.agree(catalog, k)
	}
	c.publish(catalog, k)
	return wait
}

// agree records that the status names the content in use. It also copies the tried generation from
// the status, because this replica can become the leader.
func (c *Controller) agree(catalog *clustercatalog.Catalog, k *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if catalog.Status.LastUnpacked != nil {
		k.unpacked = catalog.Status.LastUnpacked.Time
	}
	k.generation, k.tried, k.err, k.blocked, k.failures = 0, false, nil, false, 0
	if catalog.Done() {
		k.generation = catalog.Generation
	}
	k.polled = c.Clock.Now()
}

func (c *Controller) pullResolved(ctx context.Context, catalog *clustercatalog.Catalog, k *known, ref string) time.Duration {
	made, err := c.fetch(ctx, catalog, ref)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, errOutdated) {
			return 0
		}
		c.fail(k, catalog.Generation, err, false)
		klog.FromContext(ctx).Error(err, "A catalog that another replica has could not be pulled", "catalog", catalog.Name, "image", ref)
		return k.retry.Sub(c.Clock.Now())
	}
	c.replace(ctx, catalog, k, made, c.unpackedAt(k, made))
	c.succeed(k, catalog.Generation)
	return 0
}

// terminal reports whether a retry cannot help: the reference is invalid, or the content of a
// digest is unusable. A tag can name another image later.
func terminal(err error, ref string) bool {
	if _, wrong := reference.ParseNamed(ref); wrong != nil {
		return true
	}
	var refused *image.Refused
	return digestOf(ref) != "" && (errors.As(err, &refused) || unreadable(err))
}
