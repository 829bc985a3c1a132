package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// item looks at one object, and once more when it changed in between.
func (p *previewer) item(ctx context.Context, i int) (PreviewItem, error) {
	look := p.stays
	if p.subjects[i].Leaving {
		look = p.goes
	}
	item, err := look(ctx, i)
	if surprised(item.Err) {
		item, err = look(ctx, i)
	}
	if err == nil && surprised(item.Err) {
		item.Action, item.Message = Deferred, "it changes all the time"
		item.Failure, item.Err = nil, nil
	}
	return item, err
}

// stays is an object of a layer.
func (p *previewer) stays(ctx context.Context, i int) (PreviewItem, error) {
	step := p.steps[i]
	item := PreviewItem{Ref: step.Ref}
	live, seen, err := p.read(ctx, step.Ref)
	switch {
	case meta.IsNoMatchError(err) && p.provides(isCRDOf(step.Group)):
		item.Action, item.Message = Deferred, "its kind is not served yet; the same rollout defines it"
		return item, nil
	case err != nil:
		item.Unread = unread(err)
		return item, p.refused(&item, Create, err)
	}
	memo := p.memo(step.ID)
	item.Exists = live != nil
	decision := Decide(p.who, step, seen, memo)
	if decision.Action == Share {
		decision.Action = shareAction(live)
	}
	if step.Policy.Delete {
		decision.Action, item.Fingerprint = Idle, Fingerprint(live)
		if live != nil {
			decision.Action = Delete
			item.Before, err = plain(live)
		}
		item.Action = decision.Action
		return item, err
	}
	if step.Policy.Own == stage.Shared {
		item.Fingerprint = Fingerprint(live)
	}
	item.Action, item.Message = decision.Action, decision.Message
	if decision.Action == Idle && step.Policy.CreateOnly {
		item.Message = "exists, and is create-only: left as it is"
	}
	switch decision.Action {
	case Create:
		item.Drifted = memo != nil && !memo.Intent() && memo.Digest == step.Digest && !step.Policy.CreateOnly
		if !p.grants[i].Create {
			return item, nil
		}
		return item, p.try(ctx, &item, step, nil)
	case Update, Adopt, Recover, Verify:
		item.Drifted = memo != nil && memo.UID == seen.UID && memo.Digest == step.Digest
		if item.Action == Adopt {
			_, owner := belongs(p.who, seen.Observation, memo)
			item.Message = "exists already and " + owner
		}
		return item, p.try(ctx, &item, step, live)
	default:
		return item, nil
	}
}

// goes is an object that is in no layer.
func (p *previewer) goes(ctx context.Context, i int) (PreviewItem, error) {
	ref := p.subjects[i].Ref
	item := PreviewItem{Ref: ref, Action: Idle}
	live, seen, err := p.read(ctx, ref)
	entry := p.inventory.Entries[ref.ID]
	switch {
	case meta.IsNoMatchError(err):
		item.Action, item.Message = Deferred, "its kind is not served at the moment: whether it exists cannot be told"
		return item, nil
	case err != nil:
		item.Unread = unread(err)
		return item, p.refused(&item, Delete, err)
	case seen.Presence == observe.Absent:
		return item, nil
	}
	item.Exists = true
	ours, owner := p.mayRemove(entry, seen.Observation)
	switch {
	case !ours && entry.Intent():
		// It was never made; this is somebody else's.
	case !ours:
		item.Action, item.Message = Leave, owner
	case p.Orphan[entry.Revision], seen.Keep:
		item.Action = Release
	case seen.Deleting:
		item.Action, item.Message = Deferred, "is being deleted; its finalizers have to be done first"
	default:
		item.Action = Delete
		item.Before, err = plain(live)
	}
	return item, err
}

// read returns a live object, or nil, and what is known of it.
func (p *previewer) read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, Seen, error) {
	live, err := p.engine.Reader.Read(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, Seen{Presence: observe.Absent}, nil
	case err != nil:
		return nil, Seen{}, err
	}
	return live, Seen{Presence: observe.Present, Observation: p.engine.Names.Observe(live)}, nil
}

// try asks the server what it would make of an object that exists as live, or
// does not exist.
func (p *previewer) try(ctx context.Context, item *PreviewItem, step stage.Step, live *unstructured.Unstructured) error {
	var yielded []string
	if live != nil {
		yielded = p.yielded(item.ID)
	}
	body, err := p.bodyWithout(ctx, step, yielded)
	if err != nil {
		return err
	}
	options := targetclient.TryOptions{FieldManager: p.who.Manager}
	if live != nil {
		options.Precondition = targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()}
	}
	item.Tried = true
	tried, err := p.engine.Trier.Try(ctx, item.Ref, body, options)
	if err != nil {
		return p.refused(item, item.Action, err)
	}
	if item.After, err = plain(tried); err != nil || live == nil {
		return err
	}
	if item.Before, err = plain(live); err != nil {
		return err
	}
	if bytes.Equal(item.Before, item.After) {
		item.Before, item.After = nil, nil
		if item.Action != Adopt {
			item.Action, item.Drifted = Idle, false
		}
	}
	item.Taken = managedfields.TakenBetween(live.GetManagedFields(), tried.GetManagedFields(), p.who.Manager)
	return nil
}

// refused notes what an error says about an object, or returns it when it says
// nothing about it.
func (p *previewer) refused(item *PreviewItem, action Action, err error) error {
	if namesGoneVersion(err) {
		item.Action, item.Message = Deferred, fmt.Sprintf("%s; a rollout corrects that first, and what the server will say then cannot be told", explain(item.Ref, err))
		return nil
	}
	if silent(err) {
		return err
	}
	if apierrors.IsForbidden(err) && !item.Tried {
		// Nothing but rights can forbid a read.
		return err
	}
	if !surprised(err) && apierrors.IsNotFound(err) && item.Namespace != "" && p.provides(isNamespace(item.Namespace)) {
		item.Action, item.Message = Deferred, fmt.Sprintf("its namespace %s does not exist yet; the same rollout makes it", item.Namespace)
		return nil
	}
	item.Action, item.Failure, item.Err = action, classify(item.Ref, err), err
	return nil
}

// plain is an object without what changes with every write, without status, and
// without the manifest that kubectl apply keeps in an annotation: what is watched has
// lost it, and the server's answer to a dry-run has it. Before and after are compared
// in this form, wherever they come from: what one source of the two leaves out must be
// left out here.
func plain(object *unstructured.Unstructured) ([]byte, error) {
	content := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		if key != "status" {
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

// plainMetadata is metadata as plain has it. No annotations and an empty map of them
// are the same.
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
