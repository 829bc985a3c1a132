package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// CompetingOwner is another program that may roll out the objects of a chain. It must record its
// ownership before its first write, as Helm does with the Secret of a release. So a check before
// the first write of a pass suffices, and the engine needs no watch.
type CompetingOwner interface {
	// Claims returns, as text, the reason why the other program owns the objects now, and the
	// user's options. It returns "" if the program does not own them. It costs a request.
	Claims(ctx context.Context) (string, error)
}

// claim caches the answer of the competing owner for one pass. asked is true once the pass has an
// answer. An empty why then means that the competing owner does not own the objects.
type claim struct {
	asked  bool
	reason string
	why    string
}

// isClaimed reports whether a competing owner owns the objects, or its ownership is unknown. Then
// this pass writes nothing. The engine asks only before the first write, so an idle pass costs no
// request.
func (p *pass) isClaimed(ctx context.Context) bool {
	if p.CompetingOwner == nil {
		return false
	}
	if !p.claimed.asked {
		why, err := p.CompetingOwner.Claims(ctx)
		p.claimed = claim{asked: true, reason: ReasonContested, why: why}
		if err != nil {
			p.claimed.reason, p.claimed.why = ReasonUnreachable, fmt.Sprintf("it is unknown whether another owner rolls it out: %v", err)
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

// notBegun returns failures for the objects of a stage that does not start because a competing
// owner owns them.
func (p *pass) notBegun(at place) refusals {
	refused := refusals{}
	for _, step := range p.stage(at).Steps {
		refused[step.ID] = p.claims(step)
	}
	return refused
}

// writes reports whether any of the objects may need a write.
func writes(objects []*object) bool {
	return slices.ContainsFunc(objects, func(o *object) bool { return o.decide(o.seen).Action.writes() })
}
