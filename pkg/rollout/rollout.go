// Package rollout is the engine. It brings the objects of a chain of revisions to the state that
// the chain describes, and keeps them in that state. It follows one rule:
//
//	An object belongs to the newest layer that has reached its stage; an object
//	of the inventory that is in no layer is deleted, by uid, in reverse order.
//
// Rollout, handover between revisions, several active revisions, pruning, archival, falling back to
// an older revision and deletion all follow from this rule. The engine sends no request to the
// target cluster while nothing changes.
//
// The engine has three levels of code. Each calls the next level and gets a value back:
//
//   - chain (pass): assigns every object to a stage, advances, prunes, and builds the Report.
//   - stage: preflight tries the writes of a phase by dry-run, reconcileReachedStage reconciles the
//     objects of a reached stage, and gates decide whether the next stage may start. preflight
//     returns refusals, reconcileReachedStage a stageResult.
//   - object: Decide, a pure function, chooses the action for one object from the manifest, the
//     observation and the inventory: nothing, create, update, adopt, repair, or report. The methods
//     of object carry it out and return an objectResult. An object cannot access the pass, so
//     objects are processed in parallel.
//
// conclude merges an objectResult into the ledger and the memory. The ledger is the inventory
// during a pass; the inventory changes only through its methods. The memory may be lost at any
// time.
//
// A pass over a chain (Engine.Reconcile) has these steps, in this order. Each is a method of pass,
// which run calls:
//
//  1. watch: passes the objects of the layers and of the inventory to the observer.
//  2. assign: assigns every object to the stage of the newest layer that has reached it.
//  3. reconcileReached: reconciles every reached stage of every layer (reconcileReachedStage).
//     Before the first write, it saves the facts that a crash must not lose: the reached stage, and
//     the objects that may exist soon.
//  4. advance: the newest unpaused layer reaches its next stages, while all earlier stages are
//     applied and their gates are open. Before the first stage, conform validates custom resources
//     against the definitions of the same layer. Before each stage, preflight tries the rest of the
//     phase by dry-run. Then reach does the same as step 3.
//  5. prune: deletes or releases the objects of the inventory that are in no layer. A freeze, a
//     pause, the deletion budget (chargeBudget) and the guard of definitions may prevent that. It
//     deletes custom resources before the objects that serve them, and otherwise the highest rank
//     first (turnsOf).
//  6. save: stores the inventory, if it has changed.
//  7. watch and tidy: watches by name the objects that watches by label do not show, and drops the
//     findings about objects that are not wanted any more.
//
// The report is built at the end, even of an incomplete pass. Then explain searches for the causes
// of objects that have not been ready for a while.
//
// Drift: decideOurs compares the chain's entry in managedFields with the recorded entry. If the
// entry differs, or a label or annotation of the chain, the action is Repair. If only the generation
// differs, or the resourceVersion of a kind without generations, the action is Verify. Both call
// object.repair, which reads the object. It does not change yielded fields (Policy.Yield and the
// scale subresource), values that controllers fill in, and claims that were enlarged. It applies all
// other values again, and the event Repaired names the manager of the change. After contestAllowance
// repairs in a short time, the object waits longer before each further repair, and is reported as
// Contested (patience). A paused or frozen layer only reports. A changed shared object needs a user
// (decideShared), and an object that another chain took over is a collision (decideForeign).
//
// A new action is a constant of Action, and touches these functions: Decide, or a function that it
// calls, returns it. writes reports whether it may change the cluster. act carries it out. dryRun
// and check try it in preflight, except Verify and Shared, which must read first. intend records an
// Entry before the write, and pause reports it for a paused layer. Package preview shows it to users
// before a write, and live diffs name it (revisiondiff/live). The compiler does not report a missing
// function: search for the constants Adopt and Idle.
//
// Crashes: after a crash between an apply and the save of the inventory, the inventory has the facts
// that intend saved before the apply: the reached stage, and for a new object an Entry without a
// uid. The results of a stage are saved with the next stage's intent, so a crash loses the results
// and events of one stage. The next pass recognises a new object by its marks (Identity.Owns) and
// decides Update, which applies the same content. It decides and records a repair again. An object
// of another owner under that name is a collision, unless the policy allows adoption, and is never
// deleted. A deletion changes the inventory only once the object is seen to be deleted. The charge
// of the budget (Doomed) is saved before the deletion, and the next pass deletes the same uid again.
//
// The package is a library that does not depend on Penstock's API or store. A caller compiles
// manifests into stages (package stage), stores an inventory for the chain, and calls Reconcile
// whenever the observer reports a change.
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
	// Key identifies the layer permanently (a revision's uid). The reached stages are recorded
	// under it.
	Key string
	// Revision is the number of the layer in its chain.
	Revision int64
	// Stages in the order of rollout.
	Stages []stage.Stage
	// Levels is true for the first installation with install levels: the stages are ordered by
	// level.
	Levels bool
	// Paused layers keep their objects and write nothing.
	Paused bool
}

// Freeze is the reason why nothing must be written to the cluster.
type Freeze struct {
	// Author and Reason, as text for users.
	Author, Reason string
}

// String is "frozen by alice: the year ends".
func (f Freeze) String() string { return fmt.Sprintf("frozen by %s: %s", f.Author, f.Reason) }

// Work is the desired state of one chain.
type Work struct {
	// Owner is the chain. Only one caller at a time reconciles an owner.
	Owner string
	// Layers are the active revisions, newest first. Without layers, every object of the inventory
	// is deleted.
	Layers []Layer
	// Inventory as last loaded or saved.
	Inventory Inventory
	// Save stores the inventory, and fails if another writer has stored it meanwhile. The engine
	// calls it before writes whose intent a crash must not lose, and after writes.
	Save func(context.Context, Inventory) error
	// Bodies reads manifests.
	Bodies Bodies
	// Orphan holds the numbers of revisions whose objects are released instead of deleted once they
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
	// ReportDrift is true if other writers' changes are reported and not repaired. Guards are
	// repaired anyway (see isGuard).
	ReportDrift bool
	// CompetingOwner may have taken over the objects of the chain; nil for none.
	CompetingOwner CompetingOwner
	// Budget bounds deletions; nil sets no bound.
	Budget *Budget
	// TakesFrom holds, by the number of a revision, the chains from which it may take protected
	// objects. The revision may also delete such objects with a namespace.
	TakesFrom map[int64]map[string]bool
	// AllowCRDDeletion names the CustomResourceDefinitions that may be deleted
	// although instances of them exist.
	AllowCRDDeletion map[string]bool
}

// Bodies reads the manifest behind a reference.
type Bodies interface {
	Body(ctx context.Context, ref manifest.Ref) ([]byte, error)
}

// Report holds the findings and writes of one pass.
type Report struct {
	// Layers in the order of Work.Layers.
	Layers []LayerReport
	// Inventory as last saved.
	Inventory Inventory
	// Leaving are the objects that must still be deleted, in the order of deletion.
	Leaving []Failure
	// Acknowledge is the token that a user must acknowledge to allow the deletions beyond the
	// budget; empty for none.
	Acknowledge string
	// Events describe changes in the cluster and their reasons, for users.
	Events []Event
	// RequeueAfter requests another pass even without an event; 0 requests none.
	RequeueAfter time.Duration
	// Idle is true if the engine has nothing to write or retry. Another pass would at most search
	// for the causes of objects that are not ready.
	Idle bool
}

// LayerReport is the state of one layer.
type LayerReport struct {
	Revision int64
	Phases   []PhaseReport
	// Complete is true if all stages are reached, and all objects of the layer have its content and
	// pass their probes.
	Complete bool
	// Unknown is true if the layer has failures and all of them are Unknown: no fault is known, but
	// the state of some objects is unknown.
	Unknown bool
	// Level is the install level in progress. It is nil if the layer has no levels, or all of them
	// are done.
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
	// Failures prevent the level from completing, in the order of rollout.
	Failures []Failure
}

// PhaseReport is the state of one phase of a layer.
type PhaseReport struct {
	Name string
	// Reached is true when the rollout has started the phase.
	Reached bool
	// Objects is the number of objects. Applied objects have the content of the manifest, Available
	// objects also pass their probes, Superseded objects have the content of a newer layer, and
	// Pending objects are not reached yet.
	Objects, Applied, Available, Superseded, Pending int
	// Failures prevent the phase from completing, in the order of its objects.
	Failures []Failure
	// Drift lists other writers' changes that are reported and not repaired.
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
	// ReasonStale is for a shared object that differs from its reviewed state, so it must not be
	// written.
	ReasonStale = "Stale"
)

// StuckAfter is the time after which an object counts as stuck if the server keeps refusing it for
// the same reason: a user must act. Establishing a CustomResourceDefinition, or replacing a webhook
// or the server of an APIService, takes less time.
const StuckAfter = 2 * time.Minute

// Failure describes an object that is not (yet) as desired.
type Failure struct {
	manifest.Ref
	// Reason is one of the constants.
	Reason string
	// Message is for users. It has the cause, and no values of Secrets.
	Message string
	// Cause is the reason why an object is not ready, nil when unknown.
	Cause *cause.Cause
	// NeedsPerson is true when waiting will not help.
	NeedsPerson bool
	// Refused is true when the server refused the object for any reason. An error 5xx about the
	// object is a refusal; a missing answer is not.
	Refused bool
	// Held is true when the object is being deleted and waits for finalizers.
	Held bool
	// Stuck is true when the same refusal has lasted for StuckAfter, or finalizers have held the
	// object for HeldAfter.
	Stuck bool
	// Unknown is true when the state of the object is unknown: its watch has not answered yet, or
	// the server cannot be reached. Earlier findings may still hold.
	Unknown bool
	// Acknowledge is the token that a user must acknowledge for the object to be deleted; empty for
	// none.
	Acknowledge string
	// Immutable is true when the server refuses to update the live object to its manifest, but
	// would create a new object from it. A user must delete the live object.
	Immutable bool
}

// Event describes a change by the engine, for users.
type Event struct {
	// Revision is the revision for which the change was made; 0 for none.
	Revision int64
	// Warning is true for events that a user should examine.
	Warning bool
	// Reason in one CamelCase word.
	Reason  string
	Message string
}
