package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// UnchangeableError is the server's refusal to update an existing object to its manifest, although
// the server would create the object from that manifest. It unwraps to the refusal.
type UnchangeableError struct{ refusal error }

// Error returns the refusal.
func (e *UnchangeableError) Error() string { return e.refusal.Error() }

// Unwrap returns the refusal.
func (e *UnchangeableError) Unwrap() error { return e.refusal }

// Trial tests the update of an existing object by dry-runs.
type Trial struct {
	// Manager is the field manager of the apply.
	Manager string
	// Anew tries the manifest as if the object did not exist. AlreadyExists means that the server
	// would create it.
	Anew func(ctx context.Context, body []byte) error
	// Live reads the object.
	Live func(ctx context.Context) (*unstructured.Unstructured, error)
	// Merge tries a JSON merge patch of the object.
	Merge func(ctx context.Context, patch []byte) error
}

// Retry examines an update that the server refused as invalid. It ignores the text of the refusal,
// which differs by kind, definition and policy.
//
//  1. If the server would not accept the manifest for a new object either, the manifest itself is
//     wrong, and the refusal is returned.
//  2. Defaults of an earlier manifest may block the update (see managedfields.WithLeftovers). If
//     the server accepts the update without them, there is no error, and the result is the
//     managedFields with which the update removes them.
//  3. Otherwise the object cannot be changed in this way: the error is an *UnchangeableError.
func (t Trial) Retry(ctx context.Context, ref manifest.Ref, body []byte, refusal error) ([]metav1.ManagedFieldsEntry, error) {
	if !apierrors.IsInvalid(refusal) {
		return nil, refusal
	}
	wanted, err := decode(ref, body)
	if err != nil {
		return nil, refusal
	}
	anew, err := json.Marshal(withoutAllocations(ref.ID, wanted))
	if err != nil || !apierrors.IsAlreadyExists(t.Anew(ctx, anew)) {
		return nil, refusal
	}
	live, err := t.Live(ctx)
	if err != nil {
		return nil, &UnchangeableError{refusal}
	}
	if fields := managedfields.WithLeftovers(wanted, live, t.Manager); fields != nil {
		switch err := t.update(ctx, wanted, live, fields); {
		case err == nil:
			return fields, nil
		case targetclient.IsOvertaken(err):
			return nil, err
		}
	}
	return nil, &UnchangeableError{refusal}
}

// Adopt tries the adoption of a live object by dry-run, as the engine would do it. The former
// manager loses the object (see managedfields.TakeOver), defaults of the former manifest may be
// removed, and yielded fields stay. Tried is false if there is no takeover to make, or the server
// refuses it as invalid. Then the manifest is applied to the object as it is.
func (t Trial) Adopt(ctx context.Context, step stage.Step, wanted map[string]any, live *unstructured.Unstructured) (tried bool, err error) {
	plan := managedfields.TakeOver(wanted, live.GetManagedFields(), t.Manager, step.APIVersion())
	if plan == nil {
		return false, nil
	}
	taken := live.DeepCopy()
	taken.SetManagedFields(plan.Fields)
	_, yielded := managedfields.LeftTo(wanted, taken, t.Manager, step.Policy.Yield, nil)
	wanted = runtime.DeepCopyJSON(wanted)
	managedfields.Cut(wanted, yielded)
	err = t.update(ctx, wanted, taken, plan.Fields)
	if fields := managedfields.WithLeftovers(wanted, taken, t.Manager); apierrors.IsInvalid(err) && fields != nil {
		err = t.update(ctx, wanted, taken, fields)
	}
	return !apierrors.IsInvalid(err), err
}

// update tries an apply of wanted to the object with the given managedFields.
func (t Trial) update(ctx context.Context, wanted map[string]any, live *unstructured.Unstructured, fields []metav1.ManagedFieldsEntry) error {
	assigned := &unstructured.Unstructured{Object: maps.Clone(live.Object)}
	assigned.SetManagedFields(fields)
	applied, err := managedfields.Applied(wanted, assigned, t.Manager)
	if err != nil {
		return err
	}
	before, err := json.Marshal(assigned.Object)
	if err != nil {
		return err
	}
	after, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		return err
	}
	return t.Merge(ctx, patch)
}

// withoutAllocations removes from a Service the addresses and ports that the existing Service holds
// and that no second Service gets.
func withoutAllocations(id manifest.ID, wanted map[string]any) map[string]any {
	if id.Group != "" || id.Kind != "Service" {
		return wanted
	}
	out := (&unstructured.Unstructured{Object: wanted}).DeepCopy().Object
	spec, _ := out["spec"].(map[string]any)
	delete(spec, "healthCheckNodePort")
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	return out
}

func (o *object) trial(ref manifest.Ref, options targetclient.ApplyOptions) Trial {
	try := func(ctx context.Context, body []byte, options targetclient.ApplyOptions) error {
		options.FieldManager, options.DryRun = o.who.Manager, true
		_, err := o.engine.Writer.Apply(ctx, ref, body, options)
		return err
	}
	return Trial{
		Manager: o.who.Manager,
		Anew: func(ctx context.Context, body []byte) error {
			return try(ctx, body, targetclient.ApplyOptions{CreateOnly: true, Anew: true})
		},
		Live: func(ctx context.Context) (*unstructured.Unstructured, error) { return o.engine.Reader.Read(ctx, ref) },
		Merge: func(ctx context.Context, patch []byte) error {
			return try(ctx, patch, targetclient.ApplyOptions{UID: options.UID, ResourceVersion: options.ResourceVersion, Merge: true})
		},
	}
}

// retry is Retry for a write of a pass. It repeats a refused update if managedFields must change
// first.
func (o *object) retry(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.ApplyOptions, refusal error) (*metav1.PartialObjectMetadata, error) {
	fields, err := o.trial(ref, options).Retry(ctx, ref, body, refusal)
	if err != nil || options.DryRun {
		return nil, err
	}
	live, err := o.engine.Writer.Reassign(ctx, ref, targetclient.Precondition{UID: options.UID, ResourceVersion: options.ResourceVersion}, fields)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion = live.ResourceVersion
	return o.engine.Writer.Apply(ctx, ref, body, options)
}

// remedy returns the user's options for an object that cannot be updated.
func remedy(ref manifest.Ref) string {
	command := "kubectl delete " + strings.ToLower(ref.GroupKind().String()) + " " + ref.Name
	if ref.Namespace != "" {
		command += " -n " + ref.Namespace
	}
	option, effect := consequence(ref.ID)
	return fmt.Sprintf("the existing object cannot be changed in this way, and a new one would be accepted: either delete the object, and it is created as the manifest says "+
		"(%s%s%s), or archive this revision, or roll out one that keeps the field as it is", command, option, effect)
}

// consequence returns the option of kubectl delete that keeps dependent objects, and the effect of
// the deletion.
func consequence(id manifest.ID) (option, effect string) {
	switch id.GroupKind().String() {
	case "Deployment.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch":
		return " --cascade=orphan", ": its Pods keep running; delete those that the new object does not adopt"
	case "StatefulSet.apps":
		return " --cascade=orphan", ": its Pods keep running and its claims stay"
	case "PersistentVolumeClaim":
		return "", ": the data of its volume is deleted with it unless its reclaim policy is Retain"
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return "", ": all of its custom resources are deleted with it"
	case "Namespace":
		return "", ": everything in it is deleted with it"
	}
	if strings.Contains(id.Group, ".") && !strings.HasSuffix(id.Group, ".k8s.io") {
		return " --cascade=orphan", ": the objects that it owns stay"
	}
	return "", ""
}

// noteRefusal records in the inventory whether the server refuses the update of an object to the
// leading revision. The record survives a restart, because a user who deletes the object expects
// the leading revision to create it.
func (p *pass) noteRefusal(o *object, result *objectResult) {
	entry, known := p.inventory.Entries[o.step.ID]
	revision := o.revision
	if !known || entry.Intent() || o.layer != p.leading() || entry.Revision >= revision || result.seen.UID != entry.UID {
		return
	}
	switch {
	case result.failure != nil && result.failure.Immutable:
		entry.Refused = revision
	case result.failure == nil && result.passed != nil && entry.Refused == revision:
		entry.Refused = 0
	default:
		return
	}
	p.record(o.step.ID, entry)
}

// makesRoom returns the leading revision if the server refused to update the object to it;
// otherwise 0. If a user deletes the object, the older revision must not create it again first.
func (p *pass) makesRoom(id manifest.ID, entry *Entry, at place) int64 {
	leading := p.leading()
	if entry == nil || entry.Refused == 0 || leading < 0 || leading >= at.layer || p.Layers[leading].Revision != entry.Refused {
		return 0
	}
	for _, stg := range p.Layers[leading].Stages {
		for _, step := range stg.Steps {
			if step.ID == id {
				return entry.Refused
			}
		}
	}
	return 0
}

func isUnchangeable(err error) bool {
	var unchangeable *UnchangeableError
	return errors.As(err, &unchangeable)
}
