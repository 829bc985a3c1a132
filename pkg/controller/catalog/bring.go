package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/index"
)

var (
	// errOutdated ends an attempt whose catalog was changed or deleted.
	errOutdated = errors.New("the catalog was changed or deleted meanwhile")
	errNoImage  = errors.New("spec.source.image.ref is missing: an image is expected")
)

type made struct {
	ref     string
	content *content.Content
	index   *index.Index
	image   *image.Image
	// release ends the protection of its files, which no catalog uses yet.
	release func()
}

// fetch pulls an image, and makes content and index from it. It ends early if the catalog is
// changed or deleted.
func (c *Controller) fetch(ctx context.Context, catalog *clustercatalog.Catalog, ref string) (*made, error) {
	if ref == "" {
		return nil, errNoImage
	}
	ctx, end := c.beginPull(ctx, catalog)
	defer end()
	made, err := c.pull(ctx, catalog, ref)
	if err != nil && errors.Is(context.Cause(ctx), errOutdated) {
		return nil, errOutdated
	}
	return made, err
}

func (c *Controller) pull(ctx context.Context, catalog *clustercatalog.Catalog, ref string) (_ *made, err error) {
	file, done, credentialsErr := c.Credentials.File(ctx)
	defer done()
	pulled, err := c.Images.Fetch(ctx, image.Request{Reference: ref, Auth: file, User: "ClusterCatalog " + catalog.Name, Catalog: catalog.Name})
	if err != nil {
		if credentialsErr != nil {
			err = fmt.Errorf("%w (without some of the credentials: %s)", err, credentialsErr.Error())
		}
		return nil, err
	}
	result := &made{ref: pulled.Reference, image: pulled, release: c.keep(pulled.Digest)}
	defer func() {
		if err != nil {
			result.release()
			_ = pulled.Close()
		}
	}()
	if pulled.Kind != image.Catalog {
		return nil, &image.Refused{Image: ref, Reason: "it is no catalog: the label " + catalogLabel + " names no folder"}
	}
	documents := documentsOf(pulled.FS)
	if result.content, err = c.Contents.Ensure(ctx, pulled.Digest, documents); err != nil {
		return nil, err
	}
	result.index, err = c.Indexes.Update(ctx, catalog.Name, pulled.Digest, documents)
	return result, err
}

// catalogLabel is the label of an image that names the folder of its catalog.
const catalogLabel = "operators.operatorframework.io.index.configs.v1"

func documentsOf(root fs.FS) fbc.Documents {
	return func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.ReadDirectory(ctx, root, fbc.DefaultLimits(), found)
	}
}

// unreadable reports whether an error means that the image holds no valid catalog.
func unreadable(err error) bool {
	var where *fbc.Error
	return errors.As(err, &where)
}

// onDisk returns the catalog of a reference with digest if it is complete on disk, or nil.
func (c *Controller) onDisk(name, ref string) *made {
	digest := digestOf(ref)
	found, current := c.Contents.Find(digest), c.Indexes.Current(name)
	if found == nil || current == nil || current.Digest() != digest {
		return nil
	}
	return &made{ref: ref, content: found, index: current, release: func() {}}
}

// beginPull registers the work for a catalog, so that a change of the catalog can stop it.
func (c *Controller) beginPull(ctx context.Context, catalog *clustercatalog.Catalog) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.pulls[catalog.Name] = pull{uid: string(catalog.UID), generation: catalog.Generation, cancel: func() { cancel(errOutdated) }}
	c.mu.Unlock()
	// The catalog may have changed before the pull was registered.
	if object, err := c.find(catalog.Name); err == nil && (object == nil || object.GetUID() != catalog.UID || object.GetGeneration() != catalog.Generation) {
		cancel(errOutdated)
	}
	return ctx, func() {
		c.mu.Lock()
		delete(c.pulls, catalog.Name)
		c.mu.Unlock()
		cancel(nil)
	}
}

func (c *Controller) endPull(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if running, found := c.pulls[name]; found {
		running.cancel()
	}
}

// keep protects the files of a digest, although no catalog uses them yet.
func (c *Controller) keep(digest string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[digest]++
	released := false
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if released {
			return
		}
		if released = true; c.kept[digest] == 1 {
			delete(c.kept, digest)
			return
		}
		c.kept[digest]--
	}
}
