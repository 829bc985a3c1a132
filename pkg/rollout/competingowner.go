package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// CompetingOwner is another program that may roll out the objects of a chain. It records that
// before it writes the first object, as Helm does with the Secret of a release. So no watch is
// needed: a check before the first write of a pass is never too late.
type CompetingOwner interface {
	// Claims returns, in words, why the other program owns the objects now, and what a user can do;
	// empty when it does not. It costs a request.
	Claims(ctx context.Context) (string, error)
}

// claim caches the answer of the competing owner for one pass. asked is true once the pass has an
// answer. With an answer, an empty why means that the competing owner does not own the objects.
type claim struct {
	asked  bool
	reason string
	why    string
}

// isClaimed is true when a competing owner has the objects, or when that cannot be told: then nothing
// is written in this pass. It is asked before the first write, and only then: what is as it
// should be costs nothing.
func (p *pass) isClaimed(ctx context.Context) bool {
	if p.CompetingOwner == nil {
		return false
	}
	if !p.claimed.asked {
		why, err := p.CompetingOwner.Claims(ctx)
		p.claimed = claim{asked: true, reason: ReasonContested, why: why}
		if err != nil {
			p.claimed.reason, p.claimed.why = ReasonUnreachable, fmt.Sprintf("it is not known whether somebody else rolls it out: %v", err)
		}
	}
	if p.claimed.why == "" {
		return false
	}
	p.again(p.engine.Jitter(lastRetry))
	return true
}

// claims returns the failure that prevents an object from being written.
func (p *pass) claims(step stage.Step) Failure {
	return Failure{Ref: step.Ref, Reason: p.claimed.reason, Message: p.claimed.why, NeedsPerson: p.claimed.reason == ReasonContested}
}

// notBegun are the objects of a stage that is not begun because a competing owner has them.
func (p *pass) notBegun(at place) refusals {
	refused := refusals{}
	for _, step := range p.stage(at).Steps {
		refused[step.ID] = p.claims(step)
	}
	return refused
}

// writes reports whether any of some objects may change the cluster.
func writes(objects []*object) bool {
	return slices.ContainsFunc(objects, func(o *object) bool { return o.decide(o.seen).Action.writes() })
}
