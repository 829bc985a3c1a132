// Package upkeep is the loop of the leader that deletes unreferenced packs, and checks the whole
// store.
//
// Without events it does nothing. A collection follows deletions. One also follows the beginning of
// a term, because a crash or a refused create may have left packs. Once a day the loop slowly reads
// the whole store, and also deletes the unreferenced packs that this finds.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
)

const (
	// firstCollection and firstCheck are the delays after the beginning of a term.
	firstCollection = 10 * time.Second
	firstCheck      = 10 * time.Minute
	// firstRaised is the delay of the first collection after this process has raised the format of
	// the store. In a rolling update, replicas of an earlier Penstock still run, and may be about
	// to refer to any content.
	firstRaised   = 10 * time.Minute
	checkInterval = 24 * time.Hour
	// quiet is the time without deletions before a collection. patience bounds how long deletions
	// may delay it. A client that has just read a revision can still read its manifests during that
	// time.
	quiet    = 10 * time.Second
	patience = time.Minute
	// further is the delay after a collection that has reached its limit of writes. In that time,
	// an embedded etcd that has reached its quota compacts overwritten and deleted values.
	further        = 20 * time.Second
	retry          = 5 * time.Minute
	bytesPerSecond = 2 << 20
)

// Collector deletes unreferenced packs. *gc.Collector implements it.
type Collector interface {
	Begin(ctx context.Context) error
	Collect(ctx context.Context) (gc.Result, error)
}

// Metrics records the work of the loop.
type Metrics interface {
	Collected(deleted, present int)
	Checked(report fsck.Report, at time.Time)
}

// Options of the loop. All are required, except Raised.
type Options struct {
	// Collector returns a new collector.
	Collector func() Collector
	// Check checks the store, and calls pace with the number of bytes it has read.
	Check   func(ctx context.Context, pace func(ctx context.Context, bytes int) error) (fsck.Report, error)
	Metrics Metrics
	Clock   clock.WithTicker
	// Raised is true if this process has raised the format of the store.
	Raised bool
}

// Loop collects and checks for one term.
type Loop struct {
	Options
	deleted chan struct{}
}

// New returns a loop that does nothing before Run.
func New(o Options) *Loop { return &Loop{Options: o, deleted: make(chan struct{}, 1)} }

// Handler returns the event handler for informers of objects that refer to packs. A deletion starts
// a collection.
func (l *Loop) Handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { l.Deleted() }}
}

// Deleted notifies the loop of a deletion.
func (l *Loop) Deleted() {
	select {
	case l.deleted <- struct{}{}:
	default:
	}
}

// Run collects and checks until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName("upkeep")
	start := l.Clock.Now()
	notBefore := start.Add(firstCollection)
	if l.Raised {
		notBefore = start.Add(firstRaised)
	}
	collectAt, checkAt := notBefore, start.Add(firstCheck)
	// since is the time of the first deletion since the last collection.
	var since time.Time
	collector := l.Collector()
	began := false
	for {
		next := checkAt
		if !collectAt.IsZero() && collectAt.Before(next) {
			next = collectAt
		}
		timer := l.Clock.NewTimer(next.Sub(l.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.deleted:
			timer.Stop()
			now := l.Clock.Now()
			if since.IsZero() {
				since = now
			}
			if collectAt = earlier(now.Add(quiet), since.Add(patience)); l.Raised && collectAt.Before(notBefore) {
				collectAt = notBefore
			}
			continue
		case <-timer.C():
		}
		now := l.Clock.Now()
		if !checkAt.After(now) {
			checkAt = now.Add(checkInterval)
			leftOver, err := l.check(ctx, log)
			if err != nil {
				checkAt = now.Add(retry)
			}
			if leftOver {
				collectAt = now
			}
		}
		if collectAt.IsZero() || collectAt.After(now) {
			continue
		}
		collectAt, since = time.Time{}, time.Time{}
		if !began {
			began = true
			if err := collector.Begin(ctx); err != nil {
				began, collectAt = false, now.Add(againAfter(err))
				log.Error(err, "Nothing was collected; trying again", "after", againAfter(err))
				continue
			}
		}
		switch putOff, err := l.collect(ctx, log, collector); {
		case errors.Is(err, gc.ErrSuperseded):
			// A user must repair the store, or another replica leads and this term will end soon.
			collector, began, collectAt = l.Collector(), false, now.Add(retry)
		case err != nil:
			collectAt = now.Add(againAfter(err))
		case putOff > 0:
			collectAt = l.Clock.Now().Add(further)
		}
	}
}

// againAfter returns the delay after a failed collection. A full etcd may accept deletions again
// soon, and writes that wait for space depend on the collection.
func againAfter(err error) time.Duration {
	if store.IsFull(err) {
		return further
	}
	return retry
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// collect runs a collection, and returns how many packs it put off.
func (l *Loop) collect(ctx context.Context, log logr.Logger, collector Collector) (putOff int, err error) {
	begin := l.Clock.Now()
	result, err := collector.Collect(ctx)
	if result.Packs > 0 {
		log.Info("Collected what nothing refers to", "packs", result.Packs, "rebased", result.Rebased, "putOff", result.PutOff, "left", result.Present, "took", l.Clock.Since(begin).Round(time.Millisecond))
	}
	if err != nil {
		if ctx.Err() == nil {
			log.Error(err, "Not everything was collected; trying again", "after", againAfter(err))
		}
		return 0, err
	}
	l.Metrics.Collected(result.Packs, result.Present)
	return result.PutOff, nil
}

// check checks the store, and reports whether it has unreferenced records.
func (l *Loop) check(ctx context.Context, log logr.Logger) (leftOver bool, err error) {
	begin := l.Clock.Now()
	report, err := l.Check(ctx, l.pace)
	if err != nil {
		if ctx.Err() == nil {
			log.Error(err, "The store could not be checked; trying again", "after", retry)
		}
		return false, err
	}
	l.Metrics.Checked(report, l.Clock.Now())
	log.V(2).Info("Checked the store", "records", report.Records, "packs", report.Packs, "problems", len(report.Problems), "took", l.Clock.Since(begin).Round(time.Millisecond))
	for i, problem := range report.Problems {
		if problem.Kind == fsck.LeftOver {
			leftOver = true
			continue
		}
		if i < maxLogged {
			log.Error(fmt.Errorf("%s: %s", problem.Kind, problem.Message), "The store is damaged", "key", problem.Key, "repair", problem.Repair)
		}
	}
	return leftOver, nil
}

// maxLogged bounds the problems that a check logs; penstock fsck prints all of them.
const maxLogged = 10

// pace waits so that a check does not read faster than bytesPerSecond.
func (l *Loop) pace(ctx context.Context, bytes int) error {
	timer := l.Clock.NewTimer(time.Duration(bytes) * time.Second / bytesPerSecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
