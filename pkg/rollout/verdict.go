package rollout

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// User-written probes can be expensive. Their cost in one pass is limited, so that a chain returns
// its worker. The cost of a chain over time is limited, so that other chains get processor time.
// The verdict on an unchanged object is reused.

const (
	// passUnits is the largest cost that the probes of a chain may spend at once. It suffices for
	// any object, because the probes of one object cannot cost more.
	passUnits = probe.MaxCELCost
	// refillTime is the time in which a spent allowance is refilled.
	refillTime = 5 * time.Second
)

type allowance struct {
	left uint64
	at   time.Time
}

func (a *allowance) refill(now time.Time) {
	passed := min(refillTime, max(0, now.Sub(a.at)))
	a.left = min(passUnits, a.left+uint64(passed)*passUnits/uint64(refillTime))
	a.at = now
}

func (a *allowance) full() time.Duration {
	return max(1, time.Duration((passUnits-a.left)*uint64(refillTime)/passUnits))
}

type gateKey struct {
	manifest.ID
	probe probe.Metered
}

type judgement struct {
	uid             types.UID
	resourceVersion string
	verdict         probe.Verdict
}

// verdict judges a gate from the watched state, and never from a state before our last write. known
// is false if that state is not visible yet, or not judged yet.
func (p *pass) verdict(ctx context.Context, gate stage.Gate) (verdict probe.Verdict, known bool) {
	seen, presence := p.engine.Observer.Get(gate.ID)
	memo := p.inventory.Entries[gate.ID]
	if presence == observe.Absent && memo.Finished != "" {
		return verdictOfFinished(memo.Finished), true
	}
	if presence != observe.Present || !p.shows(gate) || seen.UID != memo.UID || older(seen.ResourceVersion, memo.ResourceVersion) {
		return probe.Verdict{Status: probe.Unknown, Message: "waiting to see its state"}, p.shows(gate)
	}
	if seen.Deleting {
		return probe.Verdict{Status: probe.False, Message: "is being deleted"}, true
	}
	metered, ok := gate.Probe.(probe.Metered)
	if !ok {
		return p.engine.judge(gate, seen.Object, gate.Probe.Probe), true
	}
	key := gateKey{gate.ID, metered}
	if found, ok := p.memory.verdicts[key]; ok && found.uid == seen.UID && found.resourceVersion == seen.ResourceVersion {
		return found.verdict, true
	}
	if verdict, known = p.judgeWithin(ctx, gate, metered, seen.Object); known {
		p.memory.verdicts[key] = judgement{seen.UID, seen.ResourceVersion, verdict}
	}
	return verdict, known
}

// judgeWithin judges an object by a user-written probe, within the remaining allowance. known is
// false if the remaining allowance does not suffice, but a full allowance might.
func (p *pass) judgeWithin(ctx context.Context, gate stage.Gate, metered probe.Metered, object *unstructured.Unstructured) (verdict probe.Verdict, known bool) {
	budget := probe.NewCostBudget(p.memory.allowance.left)
	if budget.Left() > 0 && ctx.Err() == nil {
		verdict = p.engine.judge(gate, object, func(object *unstructured.Unstructured) probe.Verdict { return metered.ProbeWithin(ctx, object, budget) })
		short := budget.Exhausted() && p.memory.allowance.left < passUnits
		p.memory.allowance.left -= budget.Spent()
		if !short && !budget.Slow() && ctx.Err() == nil {
			return verdict, true
		}
	}
	p.again(p.memory.allowance.full())
	return probe.Verdict{Status: probe.Unknown, Message: "is judged in another pass: the probes of this extension have used up the cost limit of this one"}, false
}

// forgetVerdicts drops the verdicts of gates that no layer has any more.
func (p *pass) forgetVerdicts() {
	if len(p.memory.verdicts) == 0 {
		return
	}
	gates := map[gateKey]bool{}
	for _, stg := range p.stages() {
		for _, gate := range stg.Gates {
			if metered, ok := gate.Probe.(probe.Metered); ok {
				gates[gateKey{gate.ID, metered}] = true
			}
		}
	}
	maps.DeleteFunc(p.memory.verdicts, func(key gateKey, _ judgement) bool { return !gates[key] })
}
