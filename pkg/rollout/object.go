package rollout

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

type setting struct {
	Work
	engine    *Engine
	who       Identity
	manifests Manifests
}

// object is one object of a chain, with the facts that the engine has about it. Its methods are the
// lowest level of the engine: they decide the action, carry it out, and return the result. They
// change only the cluster and the metrics, so objects can be processed in parallel.
type object struct {
	*setting
	// place of a wanted object. An object that is to be deleted has layer -1.
	place
	step stage.Step
	// revision that wants the object, or whose content it has.
	revision int64
	// memo is the entry of the inventory, or nil.
	memo *Entry
	// seen is the state that the watches show.
	seen Seen
	remembered
	// owned is true for a create-only object that another layer owns.
	owned bool
	// leftTo is the revision that may create the deleted object (see makesRoom), or 0.
	leftTo int64
}

type outcome struct {
	// applied is true when the object equals its manifest.
	applied bool
	failure *Failure
	// drift is another writer's change that is reported and not repaired.
	drift *Failure
}

type objectResult struct {
	outcome
	// entry is the new entry of the inventory, or nil.
	entry  *Entry
	events []Event
	// seen is the object as it was last judged.
	seen Seen
	// hidden is true when the object exists but no watch by label shows it.
	hidden bool
	// found is an object that no watch shows and that is to be written. reread is true after a live
	// read, which may have found no object.
	found  *observe.Observation
	reread bool
	// passed is the check that need not be repeated.
	passed *attempt
	// backedOff is true when it was too early for a try. wait is the remaining wait of a contested
	// object.
	backedOff bool
	wait      time.Duration
	// deleted identifies the object whose deletion the server accepted.
	deleted *targetclient.Precondition
	// version in which the object was found if the recorded version is not served.
	version string
	// watching is true when the watch, which retries by itself, will report the next change.
	watching bool
	// existing is the version of an existing create-only object.
	existing string
	// dropped is true when the inventory must drop the object: it is deleted, or does not belong to
	// the chain any more.
	dropped bool
	// protected is true when the object's namespace protects it from the chain.
	protected bool
	// looked is true when a changed object was read, and perhaps repaired.
	looked bool
	// lost describes the values that another writer had changed when the object was read.
	lost string
	// repair is the reverted change, without its times.
	repair *RepairRecord
	err    error
}

func (o *object) decide(seen Seen) Decision { return Decide(o.who, o.step, seen, o.memo) }

// recorded returns the reference of the object with the recorded version and digest.
func (o *object) recorded() manifest.Ref { return o.memo.ref(o.step.ID) }

// refuse returns a failure without a write.
func (o *object) refuse(seen Seen, reason string, needsPerson bool, message string) objectResult {
	failure := &Failure{Ref: o.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
	return objectResult{outcome: outcome{failure: failure}, seen: seen}
}

// terminating returns the failure for an object that is being deleted.
func (o *object) terminating(seen Seen) objectResult {
	result := o.refuse(seen, ReasonTerminating, false, Terminating(seen.Finalizers))
	result.failure.Held = len(seen.Finalizers) > 0
	return result
}

// repaired adds to the result the reverted change and its event.
func (o *object) repaired(result *objectResult, manager, lost string) {
	result.repair = &RepairRecord{ID: o.step.ID, Revision: o.revision, Manager: manager, Lost: lost}
	event := o.event("Repaired", "repaired %s: %s", o.step.ID, lost)
	if lost == lostObject {
		event = o.event("Recreated", "created %s again, which someone had deleted", o.step.ID)
	}
	event.Warning = lost != lostObject
	result.events = append(result.events, event)
}

func (o *object) event(reason, format string, args ...any) Event {
	return Event{Revision: o.revision, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// readLive reads an object from the API server and not from a watch.
func (s *setting) readLive(ctx context.Context, ref manifest.Ref) (Seen, error) {
	live, err := s.engine.Reader.ReadMetadata(ctx, ref)
	if apierrors.IsNotFound(err) {
		return Seen{Presence: observe.Absent}, nil
	}
	if err != nil {
		return Seen{}, err
	}
	return s.asSeen(live), nil
}

// asSeen converts the response to a write or a read.
func (s *setting) asSeen(live *metav1.PartialObjectMetadata) Seen {
	seen := Seen{Presence: observe.Present, Observation: s.engine.Names.Observe(live), Version: live.GroupVersionKind().Version}
	seen.Managed = append([]metav1.ManagedFieldsEntry{}, live.ManagedFields...)
	return seen
}
