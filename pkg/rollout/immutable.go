package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// UnchangeableError says that the server refuses to change an object that exists into what its
// manifest says, and would create it so if it did not exist. It unwraps to the refusal.
type UnchangeableError struct{ refusal error }

// Error is the refusal.
func (e *UnchangeableError) Error() string { return e.refusal.Error() }

// Unwrap returns the refusal.
func (e *UnchangeableError) Unwrap() error { return e.refusal }

// Retrial is how a refused update can be looked into.
type Retrial struct {
	// Manager that the fields belong to.
	Manager string
	// Anew asks, by a dry-run, what the server would say to a body if the object did not exist.
	// AlreadyExists says that it would create it.
	Anew func(ctx context.Context, body []byte) error
	// Live reads the object.
	Live func(ctx context.Context) (*unstructured.Unstructured, error)
	// Again sends the update again, without leftovers of an earlier manifest.
	Again func(ctx context.Context, leftovers *managedfields.Leftovers) error
}

// Retry looks into the refusal of an update as invalid, whatever the server says: the words
// are those of each kind's validation, of a definition, or of a policy.
//
//  1. A manifest that the server would not accept for a new object either is wrong in itself: the
//     refusal is returned.
//  2. Defaults of an earlier manifest may be in the way: the update is sent again and removes
//     them. When that is accepted, the result is nil.
//  3. Otherwise the object cannot be changed in this way: the result is an *UnchangeableError.
func Retry(ctx context.Context, ref manifest.Ref, body []byte, refusal error, r Retrial) error {
	if !apierrors.IsInvalid(refusal) {
		return refusal
	}
	wanted, err := decode(ref, body)
	if err != nil {
		return refusal
	}
	anew, err := json.Marshal(withoutAllocations(ref.ID, wanted))
	if err != nil || !apierrors.IsAlreadyExists(r.Anew(ctx, anew)) {
		return refusal
	}
	live, err := r.Live(ctx)
	if err != nil {
		return &UnchangeableError{refusal}
	}
	if leftovers := managedfields.FindLeftovers(wanted, live, r.Manager); leftovers != nil {
		switch err := r.Again(ctx, leftovers); {
		case err == nil:
			return nil
		case targetclient.IsOvertaken(err):
			return err
		}
	}
	return &UnchangeableError{refusal}
}

// withoutAllocations leaves out of a Service what the existing one holds: addresses and ports
// that no second Service gets.
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

// retry is Retry for a write of a pass.
func (p *pass) retry(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.ApplyOptions, refusal error) (*metav1.PartialObjectMetadata, error) {
	var applied *metav1.PartialObjectMetadata
	err := Retry(ctx, ref, body, refusal, Retrial{
		Manager: p.who.Manager,
		Anew: func(ctx context.Context, body []byte) error {
			_, err := p.engine.Writer.Apply(ctx, ref, body, targetclient.ApplyOptions{FieldManager: p.who.Manager, CreateOnly: true, DryRun: true, Anew: true})
			return err
		},
		Live: func(ctx context.Context) (*unstructured.Unstructured, error) { return p.engine.Reader.Read(ctx, ref) },
		Again: func(ctx context.Context, leftovers *managedfields.Leftovers) error {
			cleared, err := json.Marshal(leftovers.Cleared)
			if err != nil {
				return err
			}
			tried := options
			tried.DryRun, tried.Strategic = true, true
			if applied, err = p.engine.Writer.Apply(ctx, ref, cleared, tried); err != nil || options.DryRun {
				return err
			}
			live, err := p.engine.Writer.Reassign(ctx, ref, targetclient.Precondition{UID: options.UID, ResourceVersion: options.ResourceVersion}, leftovers.Fields)
			if err != nil {
				return err
			}
			final := options
			final.ResourceVersion = live.ResourceVersion
			applied, err = p.engine.Writer.Apply(ctx, ref, body, final)
			return err
		},
	})
	return applied, err
}

// remedy says what a person can do about an object that cannot be changed.
func remedy(ref manifest.Ref) string {
	command := "kubectl delete " + strings.ToLower(ref.GroupKind().String()) + " " + ref.Name
	if ref.Namespace != "" {
		command += " -n " + ref.Namespace
	}
	option, effect := consequence(ref.ID)
	return fmt.Sprintf("the existing object cannot be changed in this way, and a new one would be accepted: either delete the object, and it is created as the manifest says "+
		"(%s%s%s), or archive this revision, or roll out one that keeps the field as it is", command, option, effect)
}

// consequence says how to delete an object so that what depends on it lives, and what goes
// with it otherwise.
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

// noteRefusal records that the server refuses exactly the update of an object to the leading
// revision, or that it does not any more. It outlives the process: a deletion by a person is
// meant for that revision.
func (p *pass) noteRefusal(t task, result *taskResult) {
	entry, known := p.inventory.Entries[t.step.ID]
	revision := p.Layers[t.layer].Revision
	if !known || entry.Intent() || t.layer != p.leading() || entry.Revision >= revision || result.seen.UID != entry.UID {
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
	p.inventory.Entries[t.step.ID] = entry
}

// makesRoom returns the leading revision when an object was deleted of which the server had refused
// exactly the update to that revision. The older revision must not create it again: it
// would be back before the leading one could create it.
func (p *pass) makesRoom(t task) (int64, bool) {
	entry, leading := p.inventory.Entry(t.step.ID), p.leading()
	if entry == nil || entry.Refused == 0 || leading < 0 || leading >= t.layer || p.Layers[leading].Revision != entry.Refused {
		return 0, false
	}
	for _, stg := range p.Layers[leading].Stages {
		for _, step := range stg.Steps {
			if step.ID == t.step.ID {
				return entry.Refused, true
			}
		}
	}
	return 0, false
}

// isUnchangeable is true for an *UnchangeableError.
func isUnchangeable(err error) bool {
	var unchangeable *UnchangeableError
	return errors.As(err, &unchangeable)
}
