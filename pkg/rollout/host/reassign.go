package host

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Reassign makes managedFields of an object what they are given as: which fields
// belong to whom changes, and no value. It returns the object's metadata after
// that. Errors are those of Delete.
func (h *Host) Reassign(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	live, err := h.reassign(ctx, ref, precondition, fields)
	if err != nil {
		return nil, fmt.Errorf("reassigning the fields of %s: %w", ref.ID, err)
	}
	return live, nil
}

func (h *Host) reassign(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	if err := precondition.check(); err != nil {
		return nil, err
	}
	resource, err := h.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		// The server ignores an empty list.
		fields = []metav1.ManagedFieldsEntry{{}}
	}
	body, err := metadataPatch{
		"uid":             precondition.UID,
		"resourceVersion": precondition.ResourceVersion,
		"managedFields":   fields,
	}.onto([]byte(`{}`))
	if err != nil {
		return nil, err
	}
	live, err := h.metadata.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return nil, h.judge(ref.GroupVersionKind(), err)
	}
	return named(ref, live), nil
}
