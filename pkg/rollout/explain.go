package rollout

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// firstLook is for how long an object is not ready before it is asked why: most become
	// ready sooner.
	firstLook = 10 * time.Second
	// longestWait is the longest time between two looks at an object.
	longestWait = 5 * time.Minute
	// maxLooks bounds the objects of a chain that are looked at: the first ones in the
	// order of rollout.
	maxLooks = 20
	// looksAtOnce bounds the looks of all chains of an engine that are under way, and
	// lookTimeout how long one may take: a pass waits for its looks.
	looksAtOnce = 4
	lookTimeout = 5 * time.Second
	// verdictBytes is the longest verdict of a probe in a message with a cause.
	verdictBytes = 160
)

// look has the findings about an object that is not ready.
type look struct {
	// since is the time at which the object was first seen not ready. next is the time of the next
	// look.
	since, next time.Time
	// manifest of the object, from the first look on.
	manifest map[string]any
	// found is the cause, nil for none; shown is its redacted text.
	found *cause.Cause
	shown string
	// denied is the server's answer when the engine lacks the right to look; empty when it has it.
	denied string
}

// schedule says when to look again: half as long later as the object is not ready. A cause
// in status is so never older than that, and in the first two minutes at most a minute old.
func (l *look) schedule(now time.Time, jitter func(time.Duration) time.Duration) {
	l.next = now.Add(jitter(min(longestWait, max(firstLook, now.Sub(l.since)/2))))
}

// explain adds to the report why objects are not ready. Only reads are sent, only for
// objects that have not been ready for a while, and none when all are.
func (p *pass) explain(ctx context.Context, report *Report) {
	p.explainRefusals(report)
	if p.engine.Explainer == nil {
		return
	}
	waiting, order := map[manifest.ID][]*Failure{}, []manifest.ID(nil)
	report.has(func(f *Failure) bool {
		if f.Reason == ReasonProbe && !f.Unknown && cause.Explained(f.ID) {
			if waiting[f.ID] == nil && len(order) < maxLooks {
				order = append(order, f.ID)
			}
			waiting[f.ID] = append(waiting[f.ID], f)
		}
		return false
	})
	maps.DeleteFunc(p.memory.looks, func(id manifest.ID, _ *look) bool { return waiting[id] == nil })
	p.look(ctx, order, waiting)
	told := map[string]bool{}
	for _, id := range order {
		l := p.memory.looks[id]
		p.due(l.next)
		for _, failure := range waiting[id] {
			failure.Cause = l.found
			failure.extend(l.shown)
			if l.denied != "" && !told[l.denied] {
				failure.extend("why is not known: " + l.denied)
			}
		}
		told[l.denied] = true
	}
}

// extend appends to a message, and leaves room for that.
func (f *Failure) extend(more string) {
	if more != "" {
		f.Message = text.Clip(f.Message, verdictBytes) + "; " + more
	}
}

// explainRefusals finds refusals that come from webhooks that nobody is behind. The
// server's answer says so.
func (p *pass) explainRefusals(report *Report) {
	report.has(func(f *Failure) bool {
		if f.Refused {
			if found, ok := cause.OfRefusal(f.ID, f.Message); ok {
				f.Cause = &found
			}
		}
		return false
	})
}

// look looks at the objects of which it is time to, some at a time.
func (p *pass) look(ctx context.Context, order []manifest.ID, waiting map[manifest.ID][]*Failure) {
	now := p.engine.Clock.Now()
	var group sync.WaitGroup
	for _, id := range order {
		l := p.memory.looks[id]
		if l == nil {
			l = &look{since: now, next: now.Add(firstLook)}
			p.memory.looks[id] = l
		}
		if now.Before(l.next) || ctx.Err() != nil {
			continue
		}
		ref, seen := waiting[id][0].Ref, p.observed(id)
		group.Go(func() {
			select {
			case p.engine.looking <- struct{}{}:
				defer func() { <-p.engine.looking }()
				p.lookAt(ctx, ref, seen, l)
			case <-ctx.Done():
			}
		})
	}
	group.Wait()
	for _, id := range order {
		if l := p.memory.looks[id]; !now.Before(l.next) {
			l.schedule(now, p.engine.Jitter)
		}
	}
}

// lookAt asks why one object is not ready. When nobody answers, what was found before
// stays.
func (p *pass) lookAt(ctx context.Context, ref manifest.Ref, seen Seen, l *look) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if l.manifest == nil {
		wanted, err := p.manifests.Decoded(ctx, ref)
		if err != nil {
			return
		}
		l.manifest = wanted
	}
	subject := cause.Subject{ID: ref.ID, UID: seen.UID, Live: seen.Object, Manifest: l.manifest}
	found, known, err := p.engine.Explainer.Explain(ctx, subject)
	switch {
	case apierrors.IsForbidden(err):
		l.denied = text.Clip(forbidden(err), maxDeniedBytes)
	case err != nil:
		return
	default:
		l.denied = ""
	}
	l.found, l.shown = nil, ""
	if known {
		p.engine.show(ref.ID, &found, l.manifest)
		l.found, l.shown = &found, found.String()
	}
}

// maxDeniedBytes bounds what is told of a right that is missing.
const maxDeniedBytes = 256

// forbidden is the answer of a server that names the right: who cannot do what, where.
func forbidden(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// show hides in a cause what is not to be told of its object.
func (e *Engine) show(id manifest.ID, found *cause.Cause, objects ...map[string]any) {
	if len(e.Redactor.Mask(id.GroupKind())) == 0 {
		return
	}
	found.Mask(e.Redactor.Values(id.GroupKind(), objects...).Mask)
}
