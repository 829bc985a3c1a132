package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// DeletedBy is the manager of a repair that created a deleted object again: no field names the user
// who deleted it.
const DeletedBy = "(deleted)"

// Metrics records the work of the engine. Several goroutines call it, and it must return at once.
type Metrics interface {
	// PhaseBegan is called before the first write of a phase; layer is the key of
	// the layer.
	PhaseBegan(layer, phase string)
	// PhaseComplete is called in each pass that finds a phase complete.
	PhaseComplete(layer, phase string)
	// Repaired is called when an object was restored to its manifest. manager is the manager of the
	// reverted change, DeletedBy, or empty when unknown.
	Repaired(id manifest.ID, manager string)
	// Contested is called in each pass that postpones the repair of an object.
	Contested(id manifest.ID)
}

// noMetrics is the Metrics of an engine that nobody measures.
type noMetrics struct{}

func (noMetrics) PhaseBegan(string, string)    {}
func (noMetrics) PhaseComplete(string, string) {}
func (noMetrics) Repaired(manifest.ID, string) {}
func (noMetrics) Contested(manifest.ID)        {}

// began tells that a stage is about to be reached.
func (p *pass) began(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage == 0 || stages[at.stage-1].Phase != stages[at.stage].Phase {
		p.engine.Metrics.PhaseBegan(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

// ended tells that a stage is complete, and all before it.
func (p *pass) ended(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage+1 == len(stages) || stages[at.stage+1].Phase != stages[at.stage].Phase {
		p.engine.Metrics.PhaseComplete(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

// repair records and counts a repair.
func (p *pass) repair(done RepairRecord) {
	p.repaired(done, p.engine.Clock.Now())
	manager := done.Manager
	if done.Lost == lostObject {
		manager = DeletedBy
	}
	p.engine.Metrics.Repaired(done.ID, manager)
}

// repairing marks the requests of a repair.
func repairing(ctx context.Context) context.Context {
	return targetclient.Because(ctx, targetclient.Repair)
}
