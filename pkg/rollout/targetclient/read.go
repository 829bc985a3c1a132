package targetclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Read returns the complete live object, in the version of the reference or, if that is not served,
// in another version. A missing object causes an apierrors NotFound; a kind without a served
// version causes a *KindUnknownError.
func (c *Client) Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	err := c.reach(ctx, ref, func(resource schema.GroupVersionResource, _ manifest.Ref) (err error) {
		live, err = c.dynamic.Resource(resource).Namespace(ref.Namespace).Get(about(ctx, ref), ref.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref.ID, c.redactor.Error(ref.ID, err))
	}
	return live, nil
}

// ReadMetadata returns the metadata of the live object. Its apiVersion is the version that was
// read. It returns the same errors as Read.
func (c *Client) ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error) {
	var live *metav1.PartialObjectMetadata
	err := c.reach(ctx, ref, func(resource schema.GroupVersionResource, used manifest.Ref) (err error) {
		if live, err = c.metadata.Resource(resource).Namespace(ref.Namespace).Get(about(ctx, ref), ref.Name, metav1.GetOptions{}); err == nil {
			named(used, live)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading metadata of %s: %w", ref.ID, c.redactor.Error(ref.ID, err))
	}
	return live, nil
}

// Instances lists metadata of at most limit objects of a kind, in all namespaces. It ignores the
// name and namespace of the reference.
func (c *Client) Instances(ctx context.Context, kind manifest.Ref, limit int64) ([]metav1.PartialObjectMetadata, error) {
	mapping, err := c.kinds.mapping(ctx, kind.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
	}
	list, err := c.metadata.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), c.redactor.Error(kind.ID, c.judge(kind.GroupVersionKind(), err)))
	}
	items := list.Items
	if int64(len(items)) > limit {
		// A server may ignore the limit.
		items = items[:limit]
	}
	for i := range items {
		named(kind, &items[i])
	}
	return items, nil
}

// named sets the kind of metadata: in a response, it is PartialObjectMetadata.
func named(ref manifest.Ref, object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	object.TypeMeta = metav1.TypeMeta{APIVersion: ref.APIVersion(), Kind: ref.Kind}
	return object
}
