package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// DeletedBy is the manager that Metrics.Repaired gets when the engine created a deleted object
// again: no field of an object shows which user deleted it.
const DeletedBy = "(deleted)"

// Metrics records the work of the engine. Several goroutines call it, and it must return at once.
type Metrics interface {
	// PhaseBegan is called before the first write of a phase; layer is the key of
	// the layer.
	PhaseBegan(layer, phase string)
	// PhaseComplete is called in each pass that finds a phase complete.
	PhaseComplete(layer, phase string)
	// Repaired is called when an object was restored to its manifest. manager made the reverted
	// change; it is DeletedBy for a deletion, and empty when unknown.
	Repaired(id manifest.ID, manager string)
	// Contested is called in each pass that postpones the repair of an object.
	Contested(id manifest.ID)
}

type noMetrics struct{}

func (noMetrics) PhaseBegan(string, string)    {}
func (noMetrics) PhaseComplete(string, string) {}
func (noMetrics) Repaired(manifest.ID, string) {}
func (noMetrics) Contested(manifest.ID)        {}

// began reports the start of a phase when its first stage is reached.
func (p *pass) began(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage == 0 || stages[at.stage-1].Phase != stages[at.stage].Phase {
		p.engine.Metrics.PhaseBegan(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

// ended reports a phase whose stages are all complete.
func (p *pass) ended(at place) {
	stages := p.Layers[at.layer].Stages
	if at.stage+1 == len(stages) || stages[at.stage+1].Phase != stages[at.stage].Phase {
		p.engine.Metrics.PhaseComplete(p.Layers[at.layer].Key, stages[at.stage].Phase)
	}
}

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
