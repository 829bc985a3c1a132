// Package rollout brings the objects of a chain of revisions to what the chain
// says, and keeps them there. It knows one rule:
//
//	An object belongs to the newest layer that has reached its stage; an object
//	of the inventory that is in no layer is deleted, by uid, in reverse order.
//
// Rollout, handover between revisions, several active revisions, pruning,
// archival, falling back to an older revision and deletion are this one rule.
// The engine spends no request on the target cluster while nothing changes.
//
// The engine has three storeys. Each calls the one below it, and gets a value back:
//
//   - chain (pass): assigns every object to a stage, advances, prunes, and makes the Report.
//   - stage: preflight asks the server about a phase, reconcileReachedStage makes the objects of a stage as they
//     should be, gates judge whether the next stage may begin. Both return a stageResult.
//   - object: Decide, a pure function, says from the manifest, what is watched and the inventory what to
//     do with one object: nothing, create, update, adopt, repair, or report. The methods of object do it
//     and return an objectResult. An object has no way to the pass, so objects are worked on side by side.
//
// conclude applies an objectResult: to the ledger, which is the inventory during a pass and the one place
// where it changes, and to the memory of the engine, which may be lost at any time.
//
// A pass over a chain (Engine.Reconcile) has these steps, in this order; each is a method
// of pass, which run calls:
//
//  1. watch: the observer is told which objects the layers and the inventory name.
//  2. assign: every object gets its place, the stage of the newest layer that has reached
//     it.
//  3. reconcileReached: every reached stage of every layer is made as it should be (reconcileReachedStage). The facts that a crash
//     must not make us forget are saved before the first write: a stage that is reached, and objects that may
//     exist soon.
//  4. advance: the newest layer that is not paused reaches its next stages, as long as all
//     before them is applied and their gates are open. Before the first one, conform judges
//     custom resources by the definitions that come with them. Before each, preflight asks the
//     server by dry-run about the rest of the phase; then reach does with it what step 3 does.
//  5. prune: of the inventory's objects that are in no layer, those that the freeze, a pause,
//     the deletion budget (chargeBudget) and the guard of definitions let go are deleted or
//     released, custom resources before what serves them, and otherwise the highest rank first (turnsOf).
//  6. save: the inventory is stored, if it is another one.
//  7. watch and tidy: what turned out to be hidden from watches by label is watched by
//     name, and what is remembered of objects that nobody wants any more is forgotten.
//
// The report is made at the end, whether the pass came to it or not; what has not been ready for a while
// is explained then (explain).
//
// Another manager changed an object of the chain: decideOurs compares the chain's entry in
// managedFields with the one in the inventory. Another entry is Action Repair, as is a changed label or
// annotation of the chain. The same entry with another generation, or another resourceVersion where the
// kind has no generation, is Verify. Both lead to object.repair, which reads the object. Fields of
// Policy.Yield and of the subresource scale, values that controllers fill in and sizes of claims that
// others enlarged stay; all other values are applied again, and event Repaired names the manager. From
// the sixth look on, each at most ten minutes after the one before, the object waits longer each time; where
// values of ours were lost it is reported as Contested (patience). A paused or frozen layer only reports, a shared object asks a person (decideShared), and
// an object that another chain took is a collision (decideForeign).
//
// A new action is a constant of Action. Decide, or a function that it calls, returns it; writes says
// whether it may change the cluster; act carries it out, dryRun and check try it in preflight (but
// not Verify and Shared, which have to read first), intend
// gives it an Entry before the write, and pause reports it for a paused layer. Package preview shows it
// to users before anything is written, and live diffs name it (revisiondiff/live). The compiler names
// none of these places: a search for the constants Adopt and Idle finds them.
//
// A crash between an apply and the save of the inventory leaves what intend saved before the apply:
// the stage is reached, and a new object has an Entry without a uid. Findings of a whole stage are saved
// with the next stage's intent, so a crash loses those of one stage, and its events. The next pass
// recognises a new object by its marks (Identity.Owns) and decides Update, which applies the same content;
// a repair is decided and recorded again. An object of another owner under that name is a collision, unless
// the policy adopts it, and is never deleted. A deletion changes the inventory only when the object is
// seen to be gone: what the budget was charged with (Doomed) is saved before, and the next pass deletes the
// same uid again.
//
// The package is a library: it knows neither Penstock's API nor its store. A
// caller compiles manifests into stages (package stage), lends an inventory that
// it keeps for the chain, and calls Reconcile whenever the observer says that
// something happened.
package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Layer is one revision of a chain whose objects are wanted in the cluster.
type Layer struct {
	// Key identifies the layer for ever (a revision's uid): the latch of what
	// was reached is kept under it.
	Key string
	// Revision is the number of the layer in its chain.
	Revision int64
	// Stages in order of rollout.
	Stages []stage.Stage
	// Levels is true for the first installation of something that has install
	// levels: the stages are those of one level after the other.
	Levels bool
	// Paused layers hold on to their objects and write nothing.
	Paused bool
}

// Freeze is why nothing is to be written to the cluster, no matter who asks.
type Freeze struct {
	// Author and Reason in words for people.
	Author, Reason string
}

// String is "frozen by alice: the year ends".
func (f Freeze) String() string { return fmt.Sprintf("frozen by %s: %s", f.Author, f.Reason) }

// Work is one chain as it should be.
type Work struct {
	// Owner is the chain. One owner is reconciled by one caller at a time.
	Owner string
	// Layers are the active revisions, newest first. None means: everything the
	// inventory lists goes.
	Layers []Layer
	// Inventory as it was loaded or saved last.
	Inventory Inventory
	// Save stores the inventory and fails when someone else did so meanwhile.
	// The engine calls it before a write to the cluster that a crash must not
	// make us forget, and after the writes it records.
	Save func(context.Context, Inventory) error
	// Bodies reads manifests.
	Bodies Bodies
	// Orphan holds the numbers of revisions whose objects are released instead
	// of deleted when they are in no layer any more.
	Orphan map[int64]bool
	// NewOwners get what is released, by the number of the revision whose content it has; a
	// revision without one leaves its objects to nobody.
	NewOwners map[int64]*targetclient.NewOwner
	// DeleteAdopted holds the numbers of revisions whose objects are deleted also when
	// they existed before the chain; others are released.
	DeleteAdopted map[int64]bool
	// Freeze is set while nothing is to be written; what would be is reported.
	Freeze *Freeze
	// ReportDrift is true while changes by others are reported and not repaired. Guards are repaired
	// all the same: see isGuard.
	ReportDrift bool
	// CompetingOwner may have taken the objects of the chain over; nil is for nobody.
	CompetingOwner CompetingOwner
	// Budget bounds deletions; nil does not.
	Budget *Budget
	// TakesFrom are the chains, by the number of a revision, from which that revision may take
	// objects that their namespace protects, and whose objects may go with a namespace of it.
	TakesFrom map[int64]map[string]bool
	// AllowCRDDeletion names the CustomResourceDefinitions that may be deleted
	// although instances of them exist.
	AllowCRDDeletion map[string]bool
}

// Bodies reads the manifest behind a reference.
type Bodies interface {
	Body(ctx context.Context, ref manifest.Ref) ([]byte, error)
}

// Report is what one pass found and did.
type Report struct {
	// Layers in the order of Work.Layers.
	Layers []LayerReport
	// Inventory as it was saved last.
	Inventory Inventory
	// Leaving are the objects that still have to go, in the order in which they
	// will.
	Leaving []Failure
	// Acknowledge is what a person has to answer for the deletions that are beyond
	// the budget to go on; empty when there are none.
	Acknowledge string
	// Events are for people: what was changed in the cluster, and why.
	Events []Event
	// RequeueAfter asks for another pass even when nothing happens; 0 asks for
	// none.
	RequeueAfter time.Duration
	// Idle is true when nothing is being done or tried again: at most, another pass looks
	// why objects are not ready. It needs no manifests.
	Idle bool
}

// LayerReport is the state of one layer.
type LayerReport struct {
	Revision int64
	Phases   []PhaseReport
	// Complete is true when all stages were reached, all objects that belong to
	// the layer are as it says and pass their probes.
	Complete bool
	// Unknown is true when nothing is known to be wrong with the layer, but not all
	// of it can be seen: all its failures are Unknown, and there are some.
	Unknown bool
	// Level is the install level that runs; nil when levels do not order the
	// layer, or all of them are done.
	Level *LevelReport
}

// LevelReport is what an installation by levels is at.
type LevelReport struct {
	// Number of the level that runs.
	Number int
	// Objects of it, and how many of them are not as they should be or do not
	// pass their probes.
	Objects, Unready int
	// Waiting is how many objects of later levels wait for it.
	Waiting int
	// Failures say what holds it up, in the order of rollout.
	Failures []Failure
}

// PhaseReport is the state of one phase of a layer.
type PhaseReport struct {
	Name string
	// Reached is true when rollout has touched the phase.
	Reached bool
	// Objects, and how many of them are as the manifest says (Applied), pass
	// their probes (Available), belong to a newer layer (Superseded), or were not
	// reached yet (Pending). The layer answers for all others.
	Objects, Applied, Available, Superseded, Pending int
	// Failures hold the phase back, in the order of its objects.
	Failures []Failure
	// Drift is what others changed, while that is reported and not repaired.
	Drift []Failure
}

// Reasons of a Failure.
const (
	ReasonCollision   = "Collision"
	ReasonRejected    = "ApplyRejected"
	ReasonUnreachable = "TargetUnreachable"
	ReasonNotServed   = "KindNotServed"
	// ReasonDefinedLater is a kind that a later stage of the same layer defines.
	ReasonDefinedLater = "KindDefinedLater"
	ReasonUnwatched    = "NotWatchable"
	ReasonProbe        = "ProbeFailed"
	ReasonPaused       = "Paused"
	ReasonWaiting      = "Waiting"
	ReasonContested    = "Contested"
	ReasonTerminating  = "Terminating"
	ReasonCRDInstances = "InstancesExist"
	ReasonMissingBody  = "ContentUnreadable"
	ReasonFrozen       = "Frozen"
	ReasonBudget       = "BudgetExceeded"
	// ReasonNotEmpty is an object that somebody deletes, and with which more would go.
	ReasonNotEmpty = "NotEmpty"
	// ReasonDrifted is a shared object that somebody changed since it was written.
	ReasonDrifted = "Drifted"
	// ReasonDriftReported is an object that somebody changed or deleted while drift is reported.
	ReasonDriftReported = "DriftReported"
	// ReasonStale is a shared object that is not in the state that it may be
	// written in.
	ReasonStale = "Stale"
)

// StuckAfter is the time after which the same refusal needs a person. It is longer than the
// replacement of a webhook or of a server behind an APIService, and than the establishing
// of a definition.
const StuckAfter = 2 * time.Minute

// Failure is an object that is not (yet) as it should be.
type Failure struct {
	manifest.Ref
	// Reason is one of the constants.
	Reason string
	// Message for a person, without values of Secrets. The cause is in it.
	Message string
	// Cause is why an object is not ready, nil when that is not known.
	Cause *cause.Cause
	// NeedsPerson is true when waiting will not help.
	NeedsPerson bool
	// Refused is true when the server was asked and said no, whatever its reason: an
	// answer of the 500s about the object is one, no answer is none.
	Refused bool
	// Held is true when the object is being deleted and finalizers hold it.
	Held bool
	// Stuck is true when the object has been refused so for StuckAfter, or held for HeldAfter.
	Stuck bool
	// Unknown is true when the state of the object is not known: its watch has not
	// answered yet, or the server cannot be reached. Earlier findings may still
	// hold.
	Unknown bool
	// Acknowledge is what a person has to answer for the object to go, empty for nothing.
	Acknowledge string
	// Immutable is true when the server refuses to change the live object into what the
	// manifest says, and would create it so: a person has to delete it.
	Immutable bool
}

// Event tells a person what the engine changed.
type Event struct {
	// Revision that the change was made for; 0 for none.
	Revision int64
	// Warning is true for events that someone should look at.
	Warning bool
	// Reason in one CamelCase word.
	Reason  string
	Message string
}
