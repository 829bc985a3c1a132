package targetclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Owners are the new owners of an object.
type Owners struct {
	// References are all owner references; empty removes all.
	References []metav1.OwnerReference
	// WithoutLabels are labels to remove, with which another owner selects its objects.
	WithoutLabels []string
	// FieldManager of the write.
	FieldManager string
}

// SetOwners replaces the owner references of an object, and returns its new metadata. It returns
// the same errors as Delete.
func (c *Client) SetOwners(ctx context.Context, ref manifest.Ref, precondition Precondition, owners Owners) (*metav1.PartialObjectMetadata, error) {
	live, err := c.setOwners(about(ctx, ref), ref, precondition, owners)
	if err != nil {
		return nil, fmt.Errorf("writing the owners of %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return live, nil
}

func (c *Client) setOwners(ctx context.Context, ref manifest.Ref, precondition Precondition, owners Owners) (*metav1.PartialObjectMetadata, error) {
	if err := precondition.check(); err != nil {
		return nil, err
	}
	patch := metadataPatch{"uid": precondition.UID, "resourceVersion": precondition.ResourceVersion, "ownerReferences": nil}
	if len(owners.References) > 0 {
		patch["ownerReferences"] = owners.References
	}
	if len(owners.WithoutLabels) > 0 {
		labels := map[string]any{}
		for _, label := range owners.WithoutLabels {
			labels[label] = nil
		}
		patch["labels"] = labels
	}
	body, err := patch.onto([]byte(`{}`))
	if err != nil {
		return nil, err
	}
	var live *metav1.PartialObjectMetadata
	err = c.reach(ctx, ref, func(resource schema.GroupVersionResource, used manifest.Ref) (err error) {
		live, err = c.metadata.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: owners.FieldManager})
		if err == nil {
			named(used, live)
		}
		return err
	})
	return live, err
}
