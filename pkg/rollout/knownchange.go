package rollout

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// Admission knows what else than validation may refuse an update (see package
// targetadmission).
type Admission interface {
	// Prepare begins to find out what Silent needs, if nobody did lately. It returns at once.
	Prepare()
	// Silent is true when nothing else certainly does: no webhook, no policy and no quota has a
	// say in the update, and we may write it. False also means that this is not known.
	Silent(ctx context.Context, id manifest.ID, update accepted.Verdict) bool
}

// certain is true for an update that the server certainly accepts, so that it need not be
// tried.
func (p *pass) certain(ctx context.Context, t task, decision Decision, seen Seen) bool {
	if p.engine.Admission == nil || p.engine.distrusts.Load() {
		return false
	}
	if decision.Action == Create {
		// What is made now is updated one day, and that update need not wait then.
		p.engine.Admission.Prepare()
		return false
	}
	if decision.Action != Update || !p.isAsWritten(t, seen) {
		return false
	}
	before, err := p.Bodies.Body(ctx, p.inventory.Ref(t.step.ID))
	if err != nil {
		return false // no layer has what was written last
	}
	after, err := p.Bodies.Body(ctx, t.step.Ref)
	if err != nil {
		return false
	}
	verdict := accepted.Judge(t.step.Ref, before, after)
	return verdict.Unknown == "" && p.engine.Admission.Silent(ctx, t.step.ID, verdict)
}

// isAsWritten is true for our object when all that anybody has written to it, but for its
// status, is our last apply, of a whole manifest and in the version that the next one is in.
func (p *pass) isAsWritten(t task, seen Seen) bool {
	memo := p.inventory.Entry(t.step.ID)
	if memo == nil || memo.Intent() || memo.Adopted || len(memo.Yielded) > 0 || memo.Version != t.step.Version {
		return false
	}
	if seen.Presence != observe.Present || seen.Late || seen.Stale || seen.Deleting || seen.UID != memo.UID {
		return false
	}
	entry, _ := seen.Entry(p.who.Manager)
	return seen.Sole && entry.Digest != "" && entry.Digest == memo.ManagedEntry && seen.Applied == memo.Digest && seen.Chain == p.who.Chain &&
		seen.Generation == memo.Generation && (seen.Generation != 0 || seen.ResourceVersion == memo.ResourceVersion)
}

// misjudged notes that the server refused what was certain. Something has a say that we cannot
// see, such as a plugin that is compiled into the server: from now on everything is tried.
func (p *pass) misjudged(ctx context.Context, t task, seen Seen, err error) {
	passed := p.memory.passed[t.step.Ref]
	if err == nil || !passed.certain || passed.attempt != attemptOf(t, seen) || !isVerdict(t.step.Ref, err) {
		return
	}
	p.engine.distrusts.Store(true)
	p.engine.Metrics.Misjudged(t.step.ID)
	klog.FromContext(ctx).Info("The cluster refused an update that was known to be valid: all are tried first from now on, until a restart",
		"object", t.step.ID.String(), "answer", Explain(t.step.Ref, err))
}

// isVerdict is true for an answer about the object that is written, and not about the state
// that the server or the object is in.
func isVerdict(ref manifest.Ref, err error) bool {
	if apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	return Classify(ref, err).Reason == ReasonRejected || apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook")
}
