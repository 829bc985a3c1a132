// Package rolloutevents writes the events of revisions. A rollout that completes within two
// seconds, and an archival, give a single event, so the sink holds the first event back. When the
// rollout takes longer, or another event of the revision comes, the sink writes the first event
// before that, with its original time.
package rolloutevents

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Reasons of the events that may become one.
const (
	// Begun is the beginning of a rollout, and Succeeded its end. PhaseAvailable comes between
	// them.
	Begun          = "RolloutBegun"
	PhaseAvailable = "PhaseAvailable"
	Succeeded      = "Succeeded"
	// Archived says first why a revision is archived, and then that it has given up all it had.
	Archived = "Archived"
)

const (
	// heldFor is the delay of an event about the beginning of a rollout. Events have times in whole
	// seconds. A rollout that ends within two seconds needs no event about its beginning: the event
	// about its end says more.
	heldFor = 2 * time.Second
	// maxHeld bounds the revisions of which something is held: beyond that, it is written at
	// once. It is the length of client-go's queue of events.
	maxHeld = 1000
	// writtenWithin bounds a write, and endedWithin all writes when the process ends or loses
	// its lease. Controllers have 5 s for that.
	writtenWithin, endedWithin = 30 * time.Second, 3 * time.Second
	// againAfter is the wait before a write without an answer is repeated, and maxTries bounds the
	// attempts, as in client-go.
	againAfter, maxTries = 10 * time.Second, 12
)

// Events writes events in all namespaces of the host (client-go's EventInterface).
type Events interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	UpdateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, data []byte) (*corev1.Event, error)
}

// Sink writes events for a recorder.
type Sink struct {
	events Events
	// turn is for one writer after the other, so that events come in their order. It guards what
	// follows.
	turn *semaphore.Weighted
	// held has the events held back for each revision.
	held map[types.UID]*beginning
	// ended is true when nothing is held back any more.
	ended bool
}

var _ record.EventSink = &Sink{}

// beginning has the events held back for one revision: the event that began it, and those since.
type beginning struct {
	events []*corev1.Event
	timer  *time.Timer
	tries  int
}

// New returns a Sink. Run has to run as long as it is used.
func New(events Events) *Sink {
	return &Sink{events: events, turn: semaphore.NewWeighted(1), held: map[types.UID]*beginning{}}
}

// Run waits until the context ends, and then writes the held events. Later events are not held.
func (s *Sink) Run(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endedWithin)
	defer cancel()
	if err := s.turn.Acquire(ctx, 1); err != nil {
		klog.FromContext(ctx).Error(err, "Events that were held back are not written: another one was not answered in time")
		return nil
	}
	defer s.turn.Release(1)
	s.ended = true
	for revision := range s.held {
		if err := s.release(ctx, revision); err != nil {
			klog.FromContext(ctx).Error(err, "Events that were held back are not written", "revisions", len(s.held))
			return nil
		}
	}
	return nil
}

// Create implements record.EventSink. An event that is held is answered as it was given.
func (s *Sink) Create(event *corev1.Event) (written *corev1.Event, err error) {
	err = s.inTurn(func(ctx context.Context) error {
		revision := event.InvolvedObject.UID
		waits := s.held[revision]
		switch {
		case waits != nil && waits.endsWith(event):
			if written, err = s.events.CreateWithEventNamespaceWithContext(ctx, waits.one(event)); err == nil {
				s.drop(revision)
			}
			return err
		case waits != nil && waits.goesOnWith(event):
			waits.events = append(waits.events, event)
			written = event
			return nil
		}
		if err := s.release(ctx, revision); err != nil {
			return err
		}
		if s.hold(event) {
			written = event
			return nil
		}
		written, err = s.events.CreateWithEventNamespaceWithContext(ctx, event)
		return err
	})
	return written, err
}

// Update implements record.EventSink.
func (s *Sink) Update(event *corev1.Event) (written *corev1.Event, err error) {
	err = s.inTurn(func(ctx context.Context) error {
		if err := s.release(ctx, event.InvolvedObject.UID); err != nil {
			return err
		}
		written, err = s.events.UpdateWithEventNamespaceWithContext(ctx, event)
		return err
	})
	return written, err
}

// Patch implements record.EventSink. The recorder creates an event anew that was not written.
func (s *Sink) Patch(event *corev1.Event, data []byte) (written *corev1.Event, err error) {
	err = s.inTurn(func(ctx context.Context) error {
		if err := s.release(ctx, event.InvolvedObject.UID); err != nil {
			return err
		}
		written, err = s.events.PatchWithEventNamespaceWithContext(ctx, event, data)
		return err
	})
	return written, err
}

// inTurn does something while nobody else does. Errors are passed on as they are: the recorder
// tells by their types whether it tries again.
func (s *Sink) inTurn(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writtenWithin)
	defer cancel()
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	return do(ctx)
}

// hold holds an event back, if it is a beginning.
func (s *Sink) hold(event *corev1.Event) bool {
	if s.ended || len(s.held) >= maxHeld || event.Reason != Begun && event.Reason != Archived {
		return false
	}
	waits := &beginning{events: []*corev1.Event{event}}
	revision := event.InvolvedObject.UID
	s.held[revision] = waits
	waits.timer = time.AfterFunc(heldFor, func() { s.late(revision, waits) })
	return true
}

// late writes what was held long enough.
func (s *Sink) late(revision types.UID, waits *beginning) {
	err := s.inTurn(func(ctx context.Context) error {
		if s.held[revision] != waits {
			return nil
		}
		err := s.release(ctx, revision)
		if err == nil {
			return nil
		}
		waits.tries++
		klog.FromContext(ctx).Error(err, "An event that was held back is not written", "event", klog.KObj(waits.events[0]), "tries", waits.tries)
		if waits.tries == maxTries {
			s.drop(revision)
			return nil
		}
		return err
	})
	if err != nil {
		waits.timer.Reset(againAfter)
	}
}

// release writes what is held of a revision, in its order, and fails when there is no answer.
func (s *Sink) release(ctx context.Context, revision types.UID) error {
	waits := s.held[revision]
	if waits == nil {
		return nil
	}
	for len(waits.events) > 0 {
		_, err := s.events.CreateWithEventNamespaceWithContext(ctx, waits.events[0])
		if refused := (*apierrors.StatusError)(nil); errors.As(err, &refused) && !apierrors.IsAlreadyExists(err) {
			klog.FromContext(ctx).Error(err, "The server refused an event", "event", klog.KObj(waits.events[0]), "reason", waits.events[0].Reason)
		} else if err != nil && refused == nil {
			return err
		}
		waits.events = waits.events[1:]
	}
	s.drop(revision)
	return nil
}

// drop forgets what is held of a revision.
func (s *Sink) drop(revision types.UID) {
	s.held[revision].timer.Stop()
	delete(s.held, revision)
}

// endsWith is true for the event that tells all that is held.
func (b *beginning) endsWith(event *corev1.Event) bool {
	end := map[string]string{Begun: Succeeded, Archived: Archived}[b.events[0].Reason]
	return event.Reason == end
}

// goesOnWith is true for an event that the end will tell too.
func (b *beginning) goesOnWith(event *corev1.Event) bool {
	return b.events[0].Reason == Begun && event.Reason == PhaseAvailable
}

// one is the event that tells all. That a rollout began, its end says itself; why a revision is
// archived, only the first one does.
func (b *beginning) one(end *corev1.Event) *corev1.Event {
	if end.Reason != Archived {
		return end
	}
	whole := end.DeepCopy()
	whole.Message = b.events[0].Message + "; " + end.Message
	return whole
}
