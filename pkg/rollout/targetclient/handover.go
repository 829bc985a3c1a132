package targetclient

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Heir is the manager that gets the fields of a chain.
type Heir struct {
	Manager   string
	Operation metav1.ManagedFieldsOperationType
}

// HandOver removes marks from an object, as Release does, and gives the fields that the
// manifest had to another manager. No value changes. Errors are those of Delete.
func (c *Client) HandOver(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks, heir Heir) error {
	if err := c.handOver(about(ctx, ref), ref, precondition, marks, heir); err != nil {
		return fmt.Errorf("handing over %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return nil
}

func (c *Client) handOver(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks, heir Heir) error {
	if err := precondition.check(); err != nil {
		return err
	}
	return c.reach(ctx, ref, func(resource schema.GroupVersionResource, used manifest.Ref) error {
		client := c.metadata.Resource(resource).Namespace(ref.Namespace)
		live, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.UID != precondition.UID || live.ResourceVersion != precondition.ResourceVersion {
			return apierrors.NewConflict(resource.GroupResource(), ref.Name, errors.New("it is not the object that was judged"))
		}
		var fields []metav1.ManagedFieldsEntry
		for _, entry := range live.ManagedFields {
			if entry.Manager == marks.FieldManager {
				entry.Manager, entry.Operation = heir.Manager, heir.Operation
			}
			fields = append(fields, entry)
		}
		if fields, err = c.present(ctx, used, fields); err != nil {
			return err
		}
		body, err := metadataPatch{
			"uid":             precondition.UID,
			"resourceVersion": precondition.ResourceVersion,
			"labels":          nulls(marks.Labels),
			"annotations":     nulls(marks.Annotations),
			"managedFields":   fields,
		}.onto([]byte(`{}`))
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
}
