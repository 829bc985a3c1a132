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

// setting is the same for all objects of a pass: what the chain should be, who does it, and in whose name.
type setting struct {
	Work
	engine    *Engine
	who       Identity
	manifests Manifests
}

// object is one object of a chain, with all that is known of it. Its methods are the lowest storey of the
// engine: they decide what has to be done with the object, do it, and return what became of it. They
// change the cluster and count metrics, and nothing else, so objects are worked on side by side.
type object struct {
	*setting
	// place is that of a wanted object; the layer of one that has to go is -1.
	place
	step stage.Step
	// revision that wants the object, or whose content it has.
	revision int64
	// memo is the entry of the inventory, nil for none.
	memo *Entry
	// seen is the state that the watches show.
	seen Seen
	remembered
	// owned is true for a create-only object that another layer owns.
	owned bool
	// leftTo is the revision that a deleted object is left to (see makesRoom), 0 for none.
	leftTo int64
}

// outcome of one object in one pass.
type outcome struct {
	// applied is true when the object is as its manifest says.
	applied bool
	failure *Failure
	// drift is another writer's change, while it is reported and not repaired.
	drift *Failure
}

// objectResult is the result of one object, which conclude applies to the pass.
type objectResult struct {
	outcome
	// entry is set when the inventory knows more than before.
	entry  *Entry
	events []Event
	// seen is the object as it was judged last.
	seen Seen
	// hidden is true when the object exists but no watch by label shows it.
	hidden bool
	// found is an object that no watch shows and that is to be written; reread is
	// true when that, or that there is none, is known from a read.
	found  *observe.Observation
	reread bool
	// passed is the check that need not be repeated.
	passed *attempt
	// backedOff is true when nothing was tried because it is too early; wait is how
	// long that will be so for an object that is being fought over.
	backedOff bool
	wait      time.Duration
	// deleted is the object that a delete of ours was accepted for.
	deleted *targetclient.Precondition
	// version that the object was found in when the recorded one is not served.
	version string
	// watching is true when the watch, which tries again by itself, will tell.
	watching bool
	// existing is the version of a create-only object that is there.
	existing string
	// dropped is true when the inventory has to forget the object: it is gone, or not ours any more.
	dropped bool
	// protected is true when the object's namespace keeps it from us.
	protected bool
	// looked is true when a changed object was read, and perhaps repaired.
	looked bool
	// lost says what someone else had changed when the object was read.
	lost string
	// repair is a change by others that was reverted, without its times.
	repair *RepairRecord
	err    error
}

// decide applies the table to the object.
func (o *object) decide(seen Seen) Decision { return Decide(o.who, o.step, seen, o.memo) }

// recorded returns the reference of the object with the version that the inventory has.
func (o *object) recorded() manifest.Ref { return o.memo.ref(o.step.ID) }

// refuse is a result without a write.
func (o *object) refuse(seen Seen, reason string, needsPerson bool, message string) objectResult {
	failure := &Failure{Ref: o.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
	return objectResult{outcome: outcome{failure: failure}, seen: seen}
}

// terminating is a result about an object that is being deleted.
func (o *object) terminating(seen Seen) objectResult {
	result := o.refuse(seen, ReasonTerminating, false, Terminating(seen.Finalizers))
	result.failure.Held = len(seen.Finalizers) > 0
	return result
}

// repaired notes that a change by others was reverted, and makes the event of it.
func (o *object) repaired(result *objectResult, manager, lost string) {
	result.repair = &RepairRecord{ID: o.step.ID, Revision: o.revision, Manager: manager, Lost: lost}
	event := o.event("Repaired", "repaired %s: %s", o.step.ID, lost)
	if lost == lostObject {
		event = o.event("Recreated", "created %s again, which someone had deleted", o.step.ID)
	}
	event.Warning = lost != lostObject
	result.events = append(result.events, event)
}

// event makes an event about the object.
func (o *object) event(reason, format string, args ...any) Event {
	return Event{Revision: o.revision, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// readLive reads an object past the watches.
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

// asSeen is the answer to a write or a read past the watches.
func (s *setting) asSeen(live *metav1.PartialObjectMetadata) Seen {
	seen := Seen{Presence: observe.Present, Observation: s.engine.Names.Observe(live), Version: live.GroupVersionKind().Version}
	seen.Managed = append([]metav1.ManagedFieldsEntry{}, live.ManagedFields...)
	return seen
}
