package catalog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
)

// known has the known facts of one catalog. Only the pass over the catalog changes it. Fields that
// other goroutines read change under the controller's lock.
type known struct {
	uid types.UID
	// ref is the image in use, with digest; empty for none.
	ref      string
	unpacked time.Time
	content  *content.Content
	index    *index.Index
	// image is open so that no other process removes it; it may be nil.
	image *image.Image

	// generation is the generation of the last attempt; 0 for none.
	generation int64
	// tried is true after an attempt of this process. Before that, the status has the last attempt.
	tried   bool
	err     error
	blocked bool
	// failures counts consecutive failures. retry is the time of the next try; zero for none.
	failures int
	retry    time.Time
	// polled is the time of the last request for the image.
	polled            time.Time
	succeeded, failed int
	lastAttempt       time.Time
}

func (k *known) closeImage() {
	if k.image != nil {
		_ = k.image.Close()
		k.image = nil
	}
}

// digest returns the digest of the content in use; empty for none.
func (k *known) digest() string { return digestOf(k.ref) }

// digestOf returns the digest of a reference, or "" if it has none.
func digestOf(ref string) string {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return ""
	}
	if canonical, ok := named.(reference.Canonical); ok {
		return canonical.Digest().String()
	}
	return ""
}

// entryOf returns the known facts of a catalog. It drops the facts of an earlier catalog with the
// same name.
func (c *Controller) entryOf(catalog *clustercatalog.Catalog) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[catalog.Name]
	if k == nil || k.uid != catalog.UID {
		if k != nil {
			k.closeImage()
		}
		k = &known{uid: catalog.UID}
		c.known[catalog.Name] = k
	}
	return k
}

// use switches atomically to new content.
func (c *Controller) use(k *known, made *made, unpacked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.image != made.image {
		k.closeImage()
	}
	k.ref, k.content, k.index, k.image, k.unpacked = made.ref, made.content, made.index, made.image, unpacked.Truncate(time.Second)
}

func (c *Controller) succeed(k *known, generation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	k.generation, k.tried, k.err, k.blocked, k.failures, k.retry = generation, true, nil, false, 0, time.Time{}
	k.polled, k.lastAttempt = now, now
	k.succeeded++
}

func (c *Controller) fail(k *known, generation int64, err error, blocked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	if k.generation != generation {
		k.failures = 0
	}
	k.generation, k.tried, k.err, k.blocked = generation, true, err, blocked
	k.failures++
	k.failed++
	k.polled, k.lastAttempt = now, now
	if k.retry = now.Add(pause(k.failures)); blocked {
		k.retry = time.Time{}
	}
}

// drop stops serving the content in use.
func (c *Controller) drop(k *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.closeImage()
	k.ref, k.content, k.index, k.unpacked = "", nil, nil, time.Time{}
	k.generation, k.tried, k.err, k.blocked, k.failures, k.retry, k.polled = 0, false, nil, false, 0, time.Time{}, time.Time{}
}

func (c *Controller) publish(catalog *clustercatalog.Catalog, k *known) {
	c.Inventory.Put(inventory.Catalog{
		Name: catalog.Name, Labels: catalog.SelectorLabels(), Priority: catalog.Spec.Priority,
		Unavailable: catalog.Off(), Index: k.index, Unpacked: k.unpacked, Err: k.err,
	})
	c.recordServed(catalog.Name)
}

// recordServed records that the inventory is up to date for a catalog.
func (c *Controller) recordServed(name string) {
	c.mu.Lock()
	complete := c.complete
	if !complete {
		c.told[name] = true
	}
	c.mu.Unlock()
	if !complete {
		c.notifyComplete()
	}
}

func (c *Controller) forget(name string) error {
	c.mu.Lock()
	if k := c.known[name]; k != nil {
		k.closeImage()
		delete(c.known, name)
	}
	c.mu.Unlock()
	c.Inventory.Remove(name)
	c.recordServed(name)
	if err := c.Indexes.Remove(name); err != nil {
		return err
	}
	return c.collect()
}

// Tidy removes the content on disk that no catalog uses and no reader has open.
func (c *Controller) Tidy() error { return c.collect() }

func (c *Controller) collect() error {
	// Concurrent runs would read folders that the other run removes.
	c.collecting.Lock()
	defer c.collecting.Unlock()
	c.mu.Lock()
	var digests []string
	for _, k := range c.known {
		if digest := k.digest(); digest != "" {
			digests = append(digests, digest)
		}
	}
	for digest := range c.kept {
		digests = append(digests, digest)
	}
	c.mu.Unlock()
	// Content on disk can belong to a catalog without a pass since the start.
	for _, name := range c.Indexes.Catalogs() {
		if current := c.Indexes.Current(name); current != nil {
			digests = append(digests, current.Digest())
		}
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	_, err := c.Indexes.Collect()
	if err = errors.Join(err, c.Contents.Collect(digests), c.Images.Collect(digests)); err != nil {
		return fmt.Errorf("removing catalogs that nobody uses from disk: %w", err)
	}
	return nil
}
