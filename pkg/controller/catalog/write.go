package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
)

// writeStatus writes the status of a catalog if it changed. If the object has changed meanwhile, it
// writes nothing, and the watch causes another pass.
func (c *Controller) writeStatus(ctx context.Context, object *unstructured.Unstructured, catalog *clustercatalog.Catalog, k *known) error {
	now, err := c.find(catalog.Name)
	if err != nil || now == nil || now.GetUID() != object.GetUID() || now.GetGeneration() != object.GetGeneration() {
		return nil //nolint:nilerr // the result is outdated; the watch causes another pass
	}
	if catalog, err = clustercatalog.From(now); err != nil {
		return err
	}
	if now, err = c.writeLabel(ctx, now); err != nil || now == nil {
		return err
	}
	c.mu.Lock()
	outcome := clustercatalog.Outcome{Err: k.err, Blocked: k.blocked, Tried: k.tried}
	if k.ref != "" {
		outcome.Content = &clustercatalog.Content{Ref: k.ref, Unpacked: k.unpacked, Base: c.baseOf(catalog.Name)}
	}
	c.mu.Unlock()
	next := clustercatalog.Next(catalog, outcome, c.Clock.Now())
	if clustercatalog.Same(catalog.Status, next) {
		return nil
	}
	changed, err := clustercatalog.WithStatus(now, next)
	if err != nil {
		return err
	}
	_, err = c.Catalogs.Resource(clustercatalog.Resource).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of ClusterCatalog %s: %w", catalog.Name, err)
	}
	return nil
}

// baseOf returns the URL of a catalog; empty if no server listens.
func (c *Controller) baseOf(name string) string {
	if c.Base == "" {
		return ""
	}
	return strings.TrimSuffix(c.Base, "/") + "/" + name
}

// writeLabel writes the label that extensions use to select the catalog, as OLM's webhook does. It
// returns the updated object, or nil if it was deleted.
func (c *Controller) writeLabel(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetLabels()[clustercatalog.NameLabel] == object.GetName() {
		return object, nil
	}
	return c.patch(ctx, object, map[string]any{"labels": map[string]string{clustercatalog.NameLabel: object.GetName()}})
}

func (c *Controller) removeFinalizer(ctx context.Context, object *unstructured.Unstructured) error {
	if !slices.Contains(object.GetFinalizers(), clustercatalog.CatalogdFinalizer) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(one string) bool { return one == clustercatalog.CatalogdFinalizer })
	_, err := c.patch(ctx, object, map[string]any{"finalizers": rest})
	return err
}

// patch changes the metadata of a catalog, unless it has changed meanwhile.
func (c *Controller) patch(ctx context.Context, object *unstructured.Unstructured, metadata map[string]any) (*unstructured.Unstructured, error) {
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	content, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	patched, err := c.Catalogs.Resource(clustercatalog.Resource).Patch(ctx, object.GetName(), types.MergePatchType, content, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("changing the metadata of ClusterCatalog %s: %w", object.GetName(), err)
	}
	return patched, nil
}
