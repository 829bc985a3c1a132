// Package rolloutevents writes the events of revisions. A rollout that completes within two
// seconds, and an archival, give a single event, so the sink holds the first event back. If the
// rollout takes longer, or another event of the revision arrives, the sink first writes the held
// event, with its original time.
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

// Reasons of the events that can be merged.
const (
	// Begun is the beginning of a rollout, and Succeeded its end. PhaseAvailable happens between
	// them.
	Begun          = "RolloutBegun"
	PhaseAvailable = "PhaseAvailable"
	Succeeded      = "Succeeded"
	// Archived is first the reason of the archival, and then the report that the revision has no
	// objects left.
	Archived = "Archived"
)

const (
	// heldFor is the delay of an event about the beginning of a rollout. Events have times in whole
	// seconds. A rollout that ends within two seconds needs no event about its beginning: the event
	// about its end has more information.
	heldFor = 2 * time.Second
	// maxHeld bounds the revisions with held events. Further events are written at once.
	// client-go's queue of events has the same length.
	maxHeld = 1000
	// writtenWithin bounds a write, and endedWithin all writes when the process ends or loses its
	// lease. Controllers have 5 s for that.
	writtenWithin, endedWithin = 30 * time.Second, 3 * time.Second
	// againAfter is the delay before a write without an answer is repeated, and maxTries bounds the
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
	// turn serialises the writers, so that events keep their order. It guards the following fields.
	turn *semaphore.Weighted
	held map[types.UID]*beginning
	// ended is true when no event is held back any more.
	ended bool
}

var _ record.EventSink = &Sink{}

// beginning has the held events of one revision: the first event, and later events.
type beginning struct {
	events []*corev1.Event
	timer  *time.Timer
	tries  int
}

// New returns a Sink. Run must run while it is used.
func New(events Events) *Sink {
	return &Sink{events: events, turn: semaphore.NewWeighted(1), held: map[types.UID]*beginning{}}
}

// Run waits until ctx ends, and then writes the held events. Later events are not held.
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

// Create implements record.EventSink. For a held event it returns the event unchanged.
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
		case waits != nil && waits.isCoveredBy(event):
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

// Patch implements record.EventSink. If the event was not written, the recorder creates it again.
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

// inTurn runs do while no other writer runs. It returns errors unchanged, because the recorder
// decides by their types whether to retry.
func (s *Sink) inTurn(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writtenWithin)
	defer cancel()
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	return do(ctx)
}

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

// late writes the held events of a revision after heldFor.
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

// release writes the held events of a revision in order. It fails if the server does not answer.
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

func (s *Sink) drop(revision types.UID) {
	s.held[revision].timer.Stop()
	delete(s.held, revision)
}

// endsWith reports whether an event replaces all held events.
func (b *beginning) endsWith(event *corev1.Event) bool {
	end := map[string]string{Begun: Succeeded, Archived: Archived}[b.events[0].Reason]
	return event.Reason == end
}

// isCoveredBy reports whether an event is covered by the later end, and so is held, too.
func (b *beginning) isCoveredBy(event *corev1.Event) bool {
	return b.events[0].Reason == Begun && event.Reason == PhaseAvailable
}

// one returns the event that replaces the held events. The end of a rollout implies its beginning.
// For an archival, only the first event has the reason, so the messages are joined.
func (b *beginning) one(end *corev1.Event) *corev1.Event {
	if end.Reason != Archived {
		return end
	}
	whole := end.DeepCopy()
	whole.Message = b.events[0].Message + "; " + end.Message
	return whole
}
