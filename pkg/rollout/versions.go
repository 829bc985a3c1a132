package rollout

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// send applies a body. If managedFields name API versions that are not served any more, the server
// refuses every apply; send then corrects managedFields and applies again. It examines a refused
// update (see Retry).
func (o *object) send(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, []Event, error) {
	options.FieldManager = o.who.Manager
	live, err := o.engine.Writer.Apply(ctx, ref, body, options)
	if apierrors.IsInvalid(err) && !options.CreateOnly {
		live, err = o.retry(ctx, ref, body, options, err)
	}
	if !targetclient.IsVersionGone(err) {
		return live, nil, err
	}
	corrected, events, failed := o.mend(ctx, ref, targetclient.Precondition{UID: options.UID, ResourceVersion: options.ResourceVersion})
	if failed != nil {
		return nil, nil, failed
	}
	if corrected == nil {
		return nil, nil, err
	}
	options.ResourceVersion = corrected.ResourceVersion
	live, err = o.engine.Writer.Apply(ctx, ref, body, options)
	return live, events, err
}

// mend moves managedFields entries of unserved versions to a served version, for all managers.
// While such an entry exists, the server refuses every apply. Each manager keeps its fields, no
// value changes, and an event names the managers. It returns nil if there was nothing to move.
func (o *object) mend(ctx context.Context, ref manifest.Ref, precondition targetclient.Precondition) (*metav1.PartialObjectMetadata, []Event, error) {
	before, err := o.engine.Reader.ReadMetadata(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if before.UID != precondition.UID || before.ResourceVersion != precondition.ResourceVersion {
		return nil, nil, apierrors.NewConflict(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name, errors.New("it is not the object that was judged"))
	}
	after, err := o.engine.Writer.Reassign(ctx, ref, precondition, before.ManagedFields)
	if err != nil {
		return nil, nil, err
	}
	moved := managedfields.MovedEntries(before.ManagedFields, after.ManagedFields)
	if len(moved) == 0 {
		return nil, nil, nil
	}
	return after, []Event{o.event("Reassigned", "managedFields of %s named versions that are not served any more; the fields keep their managers, now in version %s: %s",
		o.step.ID, after.APIVersion, strings.Join(moved, ", "))}, nil
}
