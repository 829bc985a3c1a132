package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// read uses the content that catalogd serves: it makes the index of the digest in the status. It
// returns the delay before the next try.
func (c *Controller) read(ctx context.Context, catalog *clustercatalog.Catalog, k *known) time.Duration {
	if !catalog.Served() {
		c.drop(k)
		c.publish(catalog, k)
		return 0
	}
	now, ref := c.Clock.Now(), catalog.Resolved()
	if k.ref != ref && k.err != nil && k.generation == catalog.Generation && now.Before(k.retry) {
		return k.retry.Sub(now)
	}
	if k.ref != ref || k.content != nil {
		if err := c.readIndex(ctx, catalog, k, ref); err != nil {
			if ctx.Err() != nil || errors.Is(err, errOutdated) {
				return 0
			}
			c.fail(k, catalog.Generation, err, false)
			klog.FromContext(ctx).Error(err, "The content that catalogd serves cannot be read", "catalog", catalog.Name, "url", catalog.Status.URLs.Base)
			c.publish(catalog, k)
			return k.retry.Sub(now)
		}
		c.succeed(k, catalog.Generation)
	}
	c.publish(catalog, k)
	return 0
}

func (c *Controller) readIndex(ctx context.Context, catalog *clustercatalog.Catalog, k *known, ref string) error {
	digest := digestOf(ref)
	if digest == "" {
		return fmt.Errorf("status.resolvedSource.image.ref %q has no digest", ref)
	}
	attempt, end := c.beginPull(ctx, catalog)
	defer end()
	built, err := c.Indexes.Update(attempt, catalog.Name, digest, func(ctx context.Context, found func(*fbc.Document) error) error {
		return c.download(ctx, catalog.Status.URLs.Base, found)
	})
	if err != nil {
		if errors.Is(context.Cause(attempt), errOutdated) {
			return errOutdated
		}
		return err
	}
	unpacked := c.Clock.Now()
	if catalog.Status.LastUnpacked != nil {
		unpacked = catalog.Status.LastUnpacked.Time
	}
	c.replace(ctx, catalog, k, &made{ref: ref, index: built, release: func() {}}, unpacked)
	return nil
}

func (c *Controller) download(ctx context.Context, base string, found func(*fbc.Document) error) error {
	address, err := url.JoinPath(base, "api", "v1", "all")
	if err != nil {
		return fmt.Errorf("reading the catalog at %s: %w", base, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("reading the catalog at %s: %w", address, err)
	}
	client, err := c.Catalogd()
	if err != nil {
		return fmt.Errorf("reading the catalog at %s: %w", address, err)
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("reading the catalog at %s: %w", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("reading the catalog at %s: the answer is %s", address, response.Status)
	}
	return fbc.Read(ctx, response.Body, address, fbc.DefaultLimits(), found)
}
