// Package rollout is the engine. It brings the objects of a chain of revisions to the state that
// the chain describes, and keeps them there. It knows one rule:
//
//	An object belongs to the newest layer that has reached its stage; an object
//	of the inventory that is in no layer is deleted, by uid, in reverse order.
//
// Rollout, handover between revisions, several active revisions, pruning, archival, falling back to
// an older revision and deletion are this one rule. The engine sends no request to the target
// cluster while nothing changes.
//
// The engine has three storeys. Each calls the one below it, and gets a value back:
//
//   - chain (pass): assigns every object to a stage, advances, prunes, and makes the Report.
//   - stage: preflight tries the writes of a phase on the server, reconcileReachedStage brings the
//     objects of a reached stage to their state, and gates decide whether the next stage may begin.
//     Both return a stageResult.
//   - object: Decide, a pure function, chooses the action for one object from the manifest, the
//     observation and the inventory: nothing, create, update, adopt, repair, or report. The methods
//     of object carry it out and return an objectResult. An object cannot access the pass, so
//     objects are processed in parallel.
//
// conclude applies an objectResult to two places. The ledger is the inventory during a pass; only
// conclude changes it. The memory of the engine may be lost at any time.
//
// A pass over a chain (Engine.Reconcile) has these steps, in this order. Each is a method of pass,
// which run calls:
//
//  1. watch: tells the observer which objects the layers and the inventory name.
//  2. assign: gives every object its place, the stage of the newest layer that has reached it.
//  3. reconcileReached: brings every reached stage of every layer to its state
//     (reconcileReachedStage). Before the first write, it saves the facts that a crash must not
//     lose: the reached stage, and objects that may exist soon.
//  4. advance: the newest layer that is not paused reaches its next stages, while all earlier
//     stages are applied and their gates are open. Before the first stage, conform checks custom
//     resources by the definitions that come with them. Before each stage, preflight tries the rest
//     of the phase by dry-run. Then reach does the same as step 3.
//  5. prune: deletes or releases the objects of the inventory that are in no layer, as far as the
//     freeze, a pause, the deletion budget (chargeBudget) and the guard of definitions allow it. It
//     deletes custom resources before the objects that serve them, and otherwise the highest rank
//     first (turnsOf).
//  6. save: stores the inventory, if it has changed.
//  7. watch and tidy: watches by name the objects that watches by label do not show, and forgets
//     objects that are no longer wanted.
//
// The report is made at the end, even of an incomplete pass. Then explain finds the cause of
// objects that have not been ready for a while.
//
// Drift: decideOurs compares the chain's entry in managedFields with the entry in the inventory.
// Another entry is Action Repair, and so is a changed label or annotation of the chain. The same
// entry with another generation, or another resourceVersion where the kind has no generation, is
// Verify. Both lead to object.repair, which reads the object. It does not change fields of
// Policy.Yield and of the subresource scale, values that controllers fill in, and claims that
// others enlarged. It applies all other values again, and event Repaired names the manager. From
// the sixth check on, each at most ten minutes after the one before, the object waits longer each
// time. If our values were lost, it is reported as Contested (patience). A paused or frozen layer
// only reports, a shared object needs a user (decideShared), and an object that another chain took
// is a collision (decideForeign).
//
// A new action is a constant of Action. Decide, or a function that it calls, returns it. writes
// says whether it may change the cluster. act carries it out. dryRun and check try it in preflight,
// except Verify and Shared, which must read first. intend gives it an Entry before the write, and
// pause reports it for a paused layer. Package preview shows it to users before a write, and live
// diffs name it (revisiondiff/live). The compiler finds none of these places: search for the
// constants Adopt and Idle.
//
// Crashes: after a crash between an apply and the save of the inventory, the inventory has what
// intend saved before the apply: the reached stage, and for a new object an Entry without a uid.
// Findings of a whole stage are saved with the next stage's intent, so a crash loses the findings
// and events of one stage. The next pass recognises a new object by its marks (Identity.Owns) and
// decides Update, which applies the same content. It decides and records a repair again. An object
// of another owner under that name is a collision, unless the policy adopts it, and is never
// deleted. A deletion changes the inventory only once the object is seen to be deleted. The charge
// of the budget (Doomed) is saved before, and the next pass deletes the same uid again.
//
// The package is a library: it knows neither Penstock's API nor its store. A caller compiles
// manifests into stages (package stage), passes in an inventory that it keeps for the chain, and
// calls Reconcile whenever the observer reports a change.
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

// Layer is a revision of a chain whose objects should be in the cluster.
type Layer struct {
	// Key identifies the layer for ever (a revision's uid): the latch of reached stages is kept
	// under it.
	Key string
	// Revision is the number of the layer in its chain.
	Revision int64
	// Stages in order of rollout.
	Stages []stage.Stage
	// Levels is true for the first installation with install levels: the stages are those of one
	// level after the other.
	Levels bool
	// Paused layers keep their objects and write nothing.
	Paused bool
}

// Freeze is the reason why nothing must be written to the cluster.
type Freeze struct {
	// Author and Reason in words for people.
	Author, Reason string
}

// String is "frozen by alice: the year ends".
func (f Freeze) String() string { return fmt.Sprintf("frozen by %s: %s", f.Author, f.Reason) }

// Work is the desired state of one chain.
type Work struct {
	// Owner is the chain. One owner is reconciled by one caller at a time.
	Owner string
	// Layers are the active revisions, newest first. None means that every object of the inventory
	// is deleted.
	Layers []Layer
	// Inventory as it was loaded or saved last.
	Inventory Inventory
	// Save stores the inventory, and fails when another writer has stored it meanwhile. The engine
	// calls it before a write to the cluster that a crash must not lose, and after the writes that
	// it records.
	Save func(context.Context, Inventory) error
	// Bodies reads manifests.
	Bodies Bodies
	// Orphan holds the numbers of revisions whose objects are released instead of deleted when they
	// are in no layer.
	Orphan map[int64]bool
	// NewOwners are the owners of released objects, by the number of the revision whose content
	// they have. Objects of other revisions get no owner.
	NewOwners map[int64]*targetclient.NewOwner
	// DeleteAdopted holds the numbers of revisions whose objects are deleted even if they existed
	// before the chain. Such objects of all other revisions are released.
	DeleteAdopted map[int64]bool
	// Freeze is set while nothing must be written; pending writes are reported.
	Freeze *Freeze
	// ReportDrift is true while changes by others are reported and not repaired. Guards are
	// repaired anyway: see isGuard.
	ReportDrift bool
	// CompetingOwner may have taken the objects of the chain over; nil for none.
	CompetingOwner CompetingOwner
	// Budget bounds deletions; nil sets no bound.
	Budget *Budget
	// TakesFrom are chains, by the number of a revision. That revision may take objects from them
	// that their namespace protects, and may delete such objects with a namespace.
	TakesFrom map[int64]map[string]bool
	// AllowCRDDeletion names the CustomResourceDefinitions that may be deleted
	// although instances of them exist.
	AllowCRDDeletion map[string]bool
}

// Bodies reads the manifest behind a reference.
type Bodies interface {
	Body(ctx context.Context, ref manifest.Ref) ([]byte, error)
}

// Report has the findings and writes of one pass.
type Report struct {
	// Layers in the order of Work.Layers.
	Layers []LayerReport
	// Inventory as it was saved last.
	Inventory Inventory
	// Leaving are the objects that must still be deleted, in the order of deletion.
	Leaving []Failure
	// Acknowledge is the answer that a user must give to allow the deletions beyond the budget;
	// empty when there are none.
	Acknowledge string
	// Events describe changes in the cluster and their reasons, for people.
	Events []Event
	// RequeueAfter asks for another pass even without an event; 0 asks for none.
	RequeueAfter time.Duration
	// Idle is true if the engine has nothing to write or retry. Another pass would at most examine
	// objects that are not ready, without manifests.
	Idle bool
}

// LayerReport is the state of one layer.
type LayerReport struct {
	Revision int64
	Phases   []PhaseReport
	// Complete is true if all stages were reached, and all objects of the layer have its content
	// and pass their probes.
	Complete bool
	// Unknown is true if the layer has failures, and all of them are Unknown: no fault is known,
	// but the state of some objects is unknown.
	Unknown bool
	// Level is the install level in progress; nil when levels do not order the layer, or all of
	// them are done.
	Level *LevelReport
}

// LevelReport is the progress of an installation by levels.
type LevelReport struct {
	// Number of the level in progress.
	Number int
	// Objects is the number of the level's objects. Unready counts the objects that differ from the
	// manifest or do not pass their probes.
	Objects, Unready int
	// Waiting is the number of objects of later levels that wait for this level.
	Waiting int
	// Failures hold the level back, in the order of rollout.
	Failures []Failure
}

// PhaseReport is the state of one phase of a layer.
type PhaseReport struct {
	Name string
	// Reached is true when rollout has touched the phase.
	Reached bool
	// Objects is the number of objects. Of them, Applied have the content of the manifest,
	// Available pass their probes, Superseded have the content of a newer layer, and Pending are
	// not reached yet.
	Objects, Applied, Available, Superseded, Pending int
	// Failures hold the phase back, in the order of its objects.
	Failures []Failure
	// Drift lists changes by others that are reported and not repaired.
	Drift []Failure
}

// Reasons of a Failure.
const (
	ReasonCollision   = "Collision"
	ReasonRejected    = "ApplyRejected"
	ReasonUnreachable = "TargetUnreachable"
	ReasonNotServed   = "KindNotServed"
	// ReasonDefinedLater is for an object whose kind a later stage of the same layer defines.
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
	// ReasonNotEmpty is for an object that a user deletes, and whose content would be deleted with
	// it.
	ReasonNotEmpty = "NotEmpty"
	// ReasonDrifted is for a shared object that another writer changed since it was written.
	ReasonDrifted = "Drifted"
	// ReasonDriftReported is for an object that another writer changed or deleted while drift is
	// reported.
	ReasonDriftReported = "DriftReported"
	// ReasonStale is for a shared object that is not in the state in which it may be written.
	ReasonStale = "Stale"
)

// StuckAfter is the time after which an object counts as stuck if the server refuses it again and
// again for the same reason: a user must act. To replace a webhook or the server behind an
// APIService, or to establish a CustomResourceDefinition, takes less time.
const StuckAfter = 2 * time.Minute

// Failure describes an object that is not (yet) as desired.
type Failure struct {
	manifest.Ref
	// Reason is one of the constants.
	Reason string
	// Message is for people, with the cause and without values of Secrets.
	Message string
	// Cause is the reason why an object is not ready, nil when unknown.
	Cause *cause.Cause
	// NeedsPerson is true when waiting will not help.
	NeedsPerson bool
	// Refused is true when the server refused the object, for any reason: an error 5xx about the
	// object is a refusal, a missing answer is none.
	Refused bool
	// Held is true when the object is being deleted and finalizers prevent that.
	Held bool
	// Stuck is true when the same refusal has lasted for StuckAfter, or finalizers have held the
	// object for HeldAfter.
	Stuck bool
	// Unknown is true when the state of the object is unknown: its watch has not answered yet, or
	// the server cannot be reached. Earlier findings may still hold.
	Unknown bool
	// Acknowledge is the answer that a user must give for the object to be deleted, empty for none.
	Acknowledge string
	// Immutable is true when the server refuses to change the live object into its manifest, but
	// would create it so: a user must delete it.
	Immutable bool
}

// Event describes a change by the engine, for people.
type Event struct {
	// Revision is the revision for which the change was made; 0 for none.
	Revision int64
	// Warning is true for events that a user should look at.
	Warning bool
	// Reason in one CamelCase word.
	Reason  string
	Message string
}
