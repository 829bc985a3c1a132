package rollout

import (
	"context"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// DeletedBy is the manager of a repair that made an object again: who had deleted
// it is in no field of it.
const DeletedBy = "(deleted)"

// Meter is told what the engine does, for metrics. It is called by several
// goroutines and must return at once.
type Meter interface {
	// PhaseBegan is called before the first write of a phase; layer is the key of
	// the layer.
	PhaseBegan(layer, phase string)
	// PhaseComplete is called in each pass that finds a phase complete.
	PhaseComplete(layer, phase string)
	// Repaired is called when an object was brought back to its manifest. manager
	// is who had changed it, DeletedBy, or empty when nobody can be named.
	Repaired(id manifest.ID, manager string)
	// Contested is called in each pass that puts the repair of an object off.
	Contested(id manifest.ID)
}

// unmetered is the Meter of an engine that nobody measures.
type unmetered struct{}

func (unmetered) PhaseBegan(string, string)    {}
func (unmetered) PhaseComplete(string, string) {}
func (unmetered) Repaired(manifest.ID, string) {}
func (unmetered) Contested(manifest.ID)        {}

// began tells that a stage is about to be reached.
func (p *pass) began(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage == 0 || stages[at.stage-1].Phase != stages[at.stage].Phase {
		p.engine.Meter.PhaseBegan(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

// ended tells that a stage is complete, and all before it.
func (p *pass) ended(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage+1 == len(stages) || stages[at.stage+1].Phase != stages[at.stage].Phase {
		p.engine.Meter.PhaseComplete(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

// recreated tells of an object that someone had deleted.
func (p *pass) recreated(id manifest.ID, events []Event) {
	if slices.ContainsFunc(events, func(e Event) bool { return e.Reason == "Recreated" }) {
		p.engine.Meter.Repaired(id, DeletedBy)
	}
}

// repairing marks the requests of a repair.
func repairing(ctx context.Context) context.Context {
	return targetclient.Because(ctx, targetclient.Repair)
}
