package targetclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Reassign replaces the managedFields of an object, and changes no value. Entries of unserved
// versions get the version of the request. It returns the new metadata. It returns the same errors
// as Delete.
func (c *Client) Reassign(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	live, err := c.reassign(ctx, ref, precondition, fields)
	if err != nil {
		return nil, fmt.Errorf("reassigning the fields of %s: %w", ref.ID, err)
	}
	return live, nil
}

func (c *Client) reassign(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	if err := precondition.check(); err != nil {
		return nil, err
	}
	var live *metav1.PartialObjectMetadata
	err := c.reach(ctx, ref, func(resource schema.GroupVersionResource, used manifest.Ref) error {
		body, err := c.reassignment(ctx, used, precondition, fields)
		if err != nil {
			return err
		}
		if live, err = c.metadata.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{}); err == nil {
			named(used, live)
		}
		return err
	})
	return live, err
}

func (c *Client) reassignment(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) ([]byte, error) {
	fields, err := c.present(ctx, ref, fields)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		// The server ignores an empty list.
		fields = []metav1.ManagedFieldsEntry{{}}
	}
	return metadataPatch{
		"uid":             precondition.UID,
		"resourceVersion": precondition.ResourceVersion,
		"managedFields":   fields,
	}.onto([]byte(`{}`))
}
