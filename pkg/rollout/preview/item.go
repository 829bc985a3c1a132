package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

type judge struct {
	options   Options
	work      rollout.Work
	objects   []object
	who       rollout.Identity
	manifests rollout.Manifests
}

// lists reports whether a layer has an object that matches. Objects without the grant Read do not
// count, because the answer would reveal them.
func (j *judge) lists(match func(manifest.ID) bool) bool {
	return slices.ContainsFunc(j.objects, func(o object) bool { return !o.Leaving && match(o.ID) })
}

// looks returns the backoff for an object that changes between the read and the dry-run: five tries
// in 0.4 s. A controller that starts to work on an object writes its status several times.
func looks() wait.Backoff {
	return wait.Backoff{Steps: 5, Duration: 25 * time.Millisecond, Factor: 2}
}

// item examines one object, and again if it changed meanwhile.
func (j *judge) item(ctx context.Context, o object) (item Item, err error) {
	look := j.stays
	if o.Leaving {
		look = j.goes
	}
	_ = wait.ExponentialBackoffWithContext(ctx, looks(), func(ctx context.Context) (bool, error) {
		item, err = look(ctx, o)
		return err != nil || !targetclient.IsOvertaken(item.Err), nil
	})
	if err == nil && targetclient.IsOvertaken(item.Err) {
		item.Action, item.Message, item.Overtaken = rollout.Deferred, "it was changed during each attempt to read it: ask again", true
		item.Failure, item.Err = nil, nil
	}
	return item, err
}

// stays examines an object of a layer.
func (j *judge) stays(ctx context.Context, o object) (Item, error) {
	step := o.step
	item := Item{Ref: step.Ref}
	live, seen, err := j.read(ctx, step.Ref)
	switch {
	case meta.IsNoMatchError(err) && j.lists(func(id manifest.ID) bool { return id.DefinesKindsOf(step.Group) }):
		item.Action, item.Message = rollout.Deferred, "its kind is not served yet; the same rollout defines it"
		return item, nil
	case err != nil:
		item.Unread = unread(err)
		return item, j.refused(&item, rollout.Create, err)
	}
	memo := j.work.Inventory.Entry(step.ID)
	item.Exists = live != nil
	decision := rollout.Decide(j.who, step, seen, memo)
	if decision.Action == rollout.Shared {
		// For a shared object, Decide returns only that the object must be read.
		decision.Action = rollout.Create
		if live != nil {
			decision.Action = rollout.Update
		}
	}
	if step.Policy.Delete {
		decision.Action, item.Fingerprint = rollout.Idle, rollout.Fingerprint(live)
		if live != nil {
			decision.Action = Delete
			item.Before, err = plain(live, j.writesStatus(live))
		}
		item.Action = decision.Action
		return item, err
	}
	if step.Policy.Own == stage.Shared {
		item.Fingerprint = rollout.Fingerprint(live)
	}
	item.Action, item.Message = decision.Action, decision.Message
	if decision.Action == rollout.Idle && step.Policy.CreateOnly {
		item.Message = "exists, and is create-only: left as it is"
	}
	switch decision.Action {
	case rollout.Create:
		item.Drifted = memo != nil && !memo.Intent() && memo.Digest == step.Digest && !step.Policy.CreateOnly
		if !o.Create {
			return item, nil
		}
		return item, j.try(ctx, &item, step, nil)
	case rollout.Update, rollout.Adopt, rollout.Repair, rollout.Verify:
		item.Drifted = memo != nil && memo.UID == seen.UID && memo.Digest == step.Digest
		if item.Action == rollout.Adopt {
			_, owner := j.who.Owns(seen.Observation, memo)
			item.Message = "exists already and " + owner
		}
		return item, j.try(ctx, &item, step, live)
	default:
		return item, nil
	}
}

// goes examines an object that is in no layer.
func (j *judge) goes(ctx context.Context, o object) (Item, error) {
	ref := o.Ref
	item := Item{Ref: ref, Action: rollout.Idle}
	live, seen, err := j.read(ctx, ref)
	entry := j.work.Inventory.Entries[ref.ID]
	switch {
	case meta.IsNoMatchError(err):
		item.Action, item.Message = rollout.Deferred, "its kind is not served at the moment: it is not known whether the object exists"
		return item, nil
	case err != nil:
		item.Unread = unread(err)
		return item, j.refused(&item, Delete, err)
	case seen.Presence == observe.Absent:
		return item, nil
	}
	item.Exists = true
	ours, owner := j.who.MayRemove(entry, seen.Observation)
	switch {
	case !ours && entry.Intent():
		// The chain never created it; the object belongs to another owner.
	case !ours:
		item.Action, item.Message = Leave, owner
	case j.work.Orphan[entry.Revision], seen.Keep, entry.Adopted && !j.work.DeleteAdopted[entry.Revision]:
		item.Action = Release
	case seen.Deleting:
		item.Action, item.Message = rollout.Deferred, rollout.Terminating(seen.Finalizers)
	default:
		item.Action = Delete
		item.Before, err = plain(live, j.writesStatus(live))
	}
	return item, err
}

// read returns a live object, or nil, and its known state.
func (j *judge) read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, rollout.Seen, error) {
	live, err := j.options.Reader.Read(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, rollout.Seen{Presence: observe.Absent}, nil
	case err != nil:
		return nil, rollout.Seen{}, err
	}
	return live, rollout.Seen{Presence: observe.Present, Observation: j.options.Names.Observe(live)}, nil
}

// try asks the server by dry-run for the result of a write to live, or of a create if live is nil.
func (j *judge) try(ctx context.Context, item *Item, step stage.Step, live *unstructured.Unstructured) error {
	item.Tried = true
	tried, err := j.ask(ctx, item.Action, step, live)
	if err != nil {
		return j.refused(item, item.Action, err)
	}
	status := j.writesStatus(tried) || live != nil && j.writesStatus(live)
	if item.After, err = plain(tried, status); err != nil || live == nil {
		return err
	}
	if item.Before, err = plain(live, status); err != nil {
		return err
	}
	if bytes.Equal(item.Before, item.After) {
		item.Before, item.After = nil, nil
		if item.Action != rollout.Adopt {
			item.Action, item.Drifted = rollout.Idle, false
		}
	}
	item.Taken = managedfields.TakenBetween(live.GetManagedFields(), tried.GetManagedFields(), j.who.Manager)
	return nil
}

// ask returns the object that a write of an action would produce.
func (j *judge) ask(ctx context.Context, action rollout.Action, step stage.Step, live *unstructured.Unstructured) (tried *unstructured.Unstructured, err error) {
	options := targetclient.TryOptions{FieldManager: j.who.Manager}
	send := func(ctx context.Context, body []byte, options targetclient.TryOptions) error {
		tried, err = j.options.Trier.Try(ctx, step.Ref, body, options)
		return err
	}
	var yielded []string
	trial := rollout.Trial{
		Manager: j.who.Manager,
		Anew: func(ctx context.Context, body []byte) error {
			return send(ctx, body, targetclient.TryOptions{FieldManager: j.who.Manager, Anew: true})
		},
		Live: func(context.Context) (*unstructured.Unstructured, error) { return live, nil },
		Merge: func(ctx context.Context, patch []byte) error {
			merge := options
			merge.Merge = true
			return send(ctx, patch, merge)
		},
	}
	if live != nil {
		options.Precondition = targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()}
		wanted, err := j.manifests.Decoded(ctx, step.Ref)
		if err != nil {
			return nil, err
		}
		if action == rollout.Adopt {
			if done, err := trial.Adopt(ctx, step, wanted, live); done || err != nil && !apierrors.IsInvalid(err) {
				return tried, err
			}
		}
		_, yielded = managedfields.LeftTo(wanted, live, j.who.Manager, step.Policy.Yield, j.work.Inventory.Entries[step.ID].Yielded)
	}
	body, err := j.manifests.Without(ctx, step, yielded)
	if err != nil {
		return nil, err
	}
	if err = send(ctx, body, options); err != nil && live != nil {
		_, err = trial.Retry(ctx, step.Ref, body, err)
	}
	return tried, err
}

// refused records a refusal of the object. It returns errors that do not concern the object.
func (j *judge) refused(item *Item, action rollout.Action, err error) error {
	if targetclient.IsVersionGone(err) {
		item.Action, item.Message = rollout.Deferred, fmt.Sprintf("%s; a rollout corrects that first; how the server answers then is not known", rollout.Explain(item.Ref, err))
		return nil
	}
	if silent(err) {
		return err
	}
	if apierrors.IsForbidden(err) && !item.Tried {
		// Only missing rights forbid a read.
		return err
	}
	if !targetclient.IsOvertaken(err) && apierrors.IsNotFound(err) && item.Namespace != "" && j.lists(func(id manifest.ID) bool { return id.IsNamespace(item.Namespace) }) {
		item.Action, item.Message = rollout.Deferred, fmt.Sprintf("its namespace %s does not exist yet; the same rollout makes it", item.Namespace)
		return nil
	}
	item.Action, item.Failure, item.Err = action, rollout.Classify(item.Ref, err), err
	return nil
}

// writesStatus reports whether the chain owns the object's status.
func (j *judge) writesStatus(object *unstructured.Unstructured) bool {
	return managedfields.WritesStatus(object.GetManagedFields(), j.who.Manager)
}

// plain returns an object as JSON without fields that change at every write, without kubectl's
// annotation with the manifest, and without status unless requested. Before and after are compared
// in this form. They have different sources, so a field that one source omits must be omitted here.
func plain(object *unstructured.Unstructured, status bool) ([]byte, error) {
	content := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		if key != "status" || status {
			content[key] = value
		}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = plainMetadata(metadata)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return raw, nil
}

// plainMetadata returns the metadata for plain. It treats an empty map of annotations as no
// annotations.
func plainMetadata(metadata map[string]any) map[string]any {
	kept := make(map[string]any, len(metadata))
	for key, value := range metadata {
		switch key {
		case "managedFields", "resourceVersion", "generation", "creationTimestamp", "uid":
		case "annotations":
			annotations, ok := value.(map[string]any)
			if !ok {
				kept[key] = value
				continue
			}
			annotations = maps.Clone(annotations)
			if delete(annotations, corev1.LastAppliedConfigAnnotation); len(annotations) > 0 {
				kept[key] = annotations
			}
		default:
			kept[key] = value
		}
	}
	return kept
}
