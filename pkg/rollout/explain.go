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
	// firstLook is the time after which the engine searches for the reason why an object is not
	// ready. Most objects become ready sooner.
	firstLook = 10 * time.Second
	// longestWait is the longest interval between two searches for an object.
	longestWait = 5 * time.Minute
	// maxLooks is the largest number of objects of a chain that the engine searches causes for: the
	// first objects in the order of rollout.
	maxLooks = 20
	// looksAtOnce is the number of concurrent searches of an engine. lookTimeout limits each
	// search, because a pass waits for it.
	looksAtOnce = 4
	lookTimeout = 5 * time.Second
	// verdictBytes is the largest length of a probe's verdict in a message with a cause.
	verdictBytes = 160
)

// look holds the findings about an object that is not ready.
type look struct {
	// since is the time at which the object was first seen not ready; next is the time of the next
	// search.
	since, next time.Time
	// manifest of the object, set by the first search.
	manifest map[string]any
	// found is the cause, or nil; shown is its redacted text.
	found *cause.Cause
	shown string
	// denied is the server's answer if the engine lacks the right to search; otherwise empty.
	denied string
}

// schedule sets the time of the next search: the interval is half the time during which the object
// has not been ready. So a cause in status is at most that old, and at most a minute old in the
// first two minutes.
func (l *look) schedule(now time.Time, jitter func(time.Duration) time.Duration) {
	l.next = now.Add(jitter(min(longestWait, max(firstLook, now.Sub(l.since)/2))))
}

// explain adds to the report the reasons why objects are not ready. It only reads, and only for
// objects that have not been ready for a while.
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

// extend appends text to a message, which it shortens to leave room.
func (f *Failure) extend(more string) {
	if more != "" {
		f.Message = text.Clip(f.Message, verdictBytes) + "; " + more
	}
}

// explainRefusals finds refusals by webhooks that have no backend. The server's message says so.
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

// look searches for the causes of the objects that are due, several at a time.
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

// lookAt searches for the cause of one object. If the search fails, it keeps the earlier finding.
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

const maxDeniedBytes = 256

// forbidden returns the server's message, which names the missing right.
func forbidden(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// show masks hidden content in a cause.
func (e *Engine) show(id manifest.ID, found *cause.Cause, objects ...map[string]any) {
	if len(e.Redactor.Mask(id.GroupKind())) == 0 {
		return
	}
	found.Mask(e.Redactor.Values(id.GroupKind(), objects...).Mask)
}
