package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

const (
	// FingerprintAbsent is the fingerprint of an object that does not exist.
	FingerprintAbsent = "absent"
	// sharedAttempts limits the tries to write a shared object that changes between the read and
	// the write.
	sharedAttempts = 4
)

// Fingerprint identifies the reviewed state of a live object: its uid and all content except
// metadata and status. So annotations and status do not change it.
func Fingerprint(live *unstructured.Unstructured) string {
	if live == nil {
		return FingerprintAbsent
	}
	content := map[string]any{"uid": string(live.GetUID())}
	for key, value := range live.Object {
		switch key {
		case "metadata", "status", "apiVersion", "kind":
		default:
			content["."+key] = value
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		// Content that was decoded from JSON can be encoded as JSON.
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// decideShared decides the action for a shared object. It is Idle while the chain's entry in
// managedFields and the object's generation are as recorded. Otherwise the object must be read.
func decideShared(who Identity, step stage.Step, seen Seen, memo *Entry) Decision {
	recorded := memo != nil && !memo.Intent()
	switch seen.Presence {
	case observe.Absent:
		if step.Policy.Delete {
			return Decision{Action: Idle}
		}
		if recorded && older(seen.ResourceVersion, memo.ResourceVersion) {
			return Decision{Deferred, "waiting to see the object that was just written"}
		}
		return Decision{Action: Shared}
	case observe.Present:
	default:
		return Decision{Deferred, "its kind is not being watched yet"}
	}
	if seen.Deleting && !step.Policy.Delete {
		return Decision{Deferred, "the existing object is being deleted; it waits for its finalizers"}
	}
	if recorded && memo.UID == seen.UID && memo.Digest == step.Digest {
		entry, _ := seen.Entry(who.Manager)
		still := seen.Generation == memo.Generation && (seen.Generation != 0 || seen.ResourceVersion == memo.ResourceVersion)
		if entry.Digest == memo.ManagedEntry && still {
			return Decision{Action: Idle}
		}
	}
	return Decision{Action: Shared}
}

// shared reads a shared object. If the object may be written and is in the expected state, shared
// writes it in one request that fails if the object has changed meanwhile.
func (o *object) shared(ctx context.Context, seen Seen) objectResult {
	var wanted map[string]any
	if !o.step.Policy.Delete {
		var err error
		if wanted, err = o.manifests.Decoded(ctx, o.step.Ref); err != nil {
			return objectResult{seen: seen, err: err}
		}
	}
	var events []Event
	for range sharedAttempts {
		live, err := o.engine.Reader.Read(ctx, o.step.Ref)
		if apierrors.IsNotFound(err) {
			live, err = nil, nil
		}
		if err != nil {
			return objectResult{seen: seen, err: err}
		}
		result := o.judgeShared(ctx, live, wanted)
		if targetclient.IsVersionGone(result.err) && live != nil {
			// Until managedFields are corrected, the server cannot say whose fields would be taken.
			corrected, said, err := o.mend(ctx, o.step.Ref, targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()})
			events = append(events, said...)
			if err == nil && corrected == nil || err != nil && !targetclient.IsOvertaken(err) {
				return result
			}
			continue
		}
		if !targetclient.IsOvertaken(result.err) {
			result.events = append(events, result.events...)
			return result
		}
	}
	return o.refuse(seen, ReasonWaiting, false, "it changes all the time")
}

// judgeShared judges a shared object that was just read:
//
//  1. If it is in the expected state, it is written, unless that would take fields that must
//     not be taken.
//  2. If it has the desired values, and is read-only or was written by us, it is fine. The
//     second case is a crash between a write and its record.
//  3. In any other state it is not written, and reported.
func (o *object) judgeShared(ctx context.Context, live *unstructured.Unstructured, wanted map[string]any) objectResult {
	if o.step.Policy.Delete {
		return o.deleteShared(ctx, live)
	}
	if live == nil {
		return o.createShared(ctx)
	}
	now := Seen{Presence: observe.Present, Observation: o.engine.Names.Observe(live)}
	policy := o.step.Policy
	expected := !policy.ReadOnly && policy.Expect == Fingerprint(live)
	compared := wanted
	if policy.ReadOnly {
		compared = withoutAnnotations(wanted)
	}
	right := managedfields.Contains(compared, live.Object)
	_, wrote := now.Entry(o.who.Manager)
	wrote = wrote && now.Applied == o.step.Digest
	switch {
	case now.Deleting:
		return o.terminating(now)
	case right && (policy.ReadOnly || wrote):
		return o.fine(now, nil, nil)
	case expected:
		return o.writeShared(ctx, now, live, wanted)
	case policy.ReadOnly || wrote:
		lost := o.engine.describeDrift(o.step.ID, managedfields.FindDrift(compared, live, o.who.Manager), compared, live.Object)
		return o.refuse(now, ReasonDrifted, true, lost)
	default:
		return o.refuse(now, ReasonStale, true, "changed since it was reviewed; "+managedfields.LastWriter(live.GetManagedFields(), o.who.Manager))
	}
}

func (o *object) createShared(ctx context.Context) objectResult {
	gone := Seen{Presence: observe.Absent}
	memo := o.memo
	switch {
	case o.step.Policy.ReadOnly || o.step.Policy.Written || memo != nil && !memo.Intent():
		return o.refuse(gone, ReasonDrifted, true, "was deleted")
	case o.step.Policy.Expect != FingerprintAbsent:
		return o.refuse(gone, ReasonStale, true, "was deleted since it was reviewed")
	default:
		return o.apply(ctx, gone, targetclient.ApplyOptions{CreateOnly: true}, nil, o.event("Configured", "created %s", o.step.ID))
	}
}

// deleteShared deletes a shared object that is in the expected state.
func (o *object) deleteShared(ctx context.Context, live *unstructured.Unstructured) objectResult {
	if live == nil {
		return objectResult{outcome: outcome{applied: true}, seen: Seen{Presence: observe.Absent}}
	}
	now := Seen{Presence: observe.Present, Observation: o.engine.Names.Observe(live)}
	switch {
	case now.Deleting:
		return o.terminating(now)
	case o.step.Policy.ReadOnly:
		return o.refuse(now, ReasonDrifted, true, "is there again; "+managedfields.LastWriter(live.GetManagedFields(), o.who.Manager))
	case o.step.Policy.Expect != Fingerprint(live):
		return o.refuse(now, ReasonStale, true, "changed since it was reviewed; "+managedfields.LastWriter(live.GetManagedFields(), o.who.Manager))
	}
	if err := o.engine.Writer.Delete(ctx, o.step.Ref, preconditionOf(now)); err != nil && !apierrors.IsNotFound(err) {
		return objectResult{seen: now, err: err}
	}
	return o.refuse(now, ReasonTerminating, false, "is being deleted")
}

func withoutAnnotations(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for key, value := range object {
		out[key] = value
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(metadata))
		for key, value := range metadata {
			if key != "annotations" {
				kept[key] = value
			}
		}
		out["metadata"] = kept
	}
	return out
}

// Stale describes how a live object differs from the reviewed state, and names its last writer. It
// returns "" for the reviewed state. us is our field manager.
func Stale(live *unstructured.Unstructured, reviewed, us string) string {
	switch {
	case Fingerprint(live) == reviewed:
		return ""
	case live == nil:
		return "was deleted since it was reviewed"
	default:
		return "changed since it was reviewed; " + managedfields.LastWriter(live.GetManagedFields(), us)
	}
}
