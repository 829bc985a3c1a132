package rolloutevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

type cluster struct {
	began time.Time

	mu    sync.Mutex
	lines []string

	fails func(event *corev1.Event) error
}

func (c *cluster) CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.fails != nil {
		if err := c.fails(event); err != nil {
			return nil, err
		}
	}
	c.write(fmt.Sprintf("%s %s %s", event.FirstTimestamp.Sub(c.began), event.InvolvedObject.UID, event.Message))
	return event, nil
}

func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

func (c *cluster) write(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

func (c *cluster) UpdateWithEventNamespaceWithContext(_ context.Context, event *corev1.Event) (*corev1.Event, error) {
	c.write("update " + event.Message)
	return event, nil
}

func (c *cluster) PatchWithEventNamespaceWithContext(_ context.Context, event *corev1.Event, _ []byte) (*corev1.Event, error) {
	c.write("patch " + event.Message)
	return event, nil
}

// happened returns an event of a revision now. Its message is its reason, unless a message is
// given.
func happened(revision, reason string, message ...string) *corev1.Event {
	message = append(message, reason)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: revision + "." + reason},
		InvolvedObject: corev1.ObjectReference{Kind: "ClusterExtensionRevision", Name: revision, UID: types.UID(revision)},
		Reason:         reason, Message: message[0], FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}
}

// TestSink: a short rollout is one event. All other events are written, in order.
func TestSink(t *testing.T) {
	type step struct {
		after  time.Duration
		event  func() *corev1.Event
		patch  bool
		update bool
	}
	of := func(after time.Duration, revision, reason string, message ...string) step {
		return step{after: after, event: func() *corev1.Event { return happened(revision, reason, message...) }}
	}
	const second, ms = time.Second, time.Millisecond
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("quota"))
	for name, c := range map[string]struct {
		reason string
		steps  []step
		fails  func(n int) error
		want   []string
	}{
		"quick": {"its end tells all", []step{of(0, "a-1", Begun), of(300*ms, "a-1", PhaseAvailable), of(300*ms, "a-1", Succeeded)}, nil,
			[]string{"600ms a-1 Succeeded"}},
		"slow": {"the beginning is told after 2 s, with its time", []step{of(0, "a-1", Begun), of(second, "a-1", PhaseAvailable), of(2*second, "a-1", PhaseAvailable, "another"), of(second, "a-1", Succeeded)}, nil,
			[]string{"0s a-1 RolloutBegun", "1s a-1 PhaseAvailable", "3s a-1 another", "4s a-1 Succeeded"}},
		"never-ends": {"it is told without anything else", []step{of(0, "a-1", Begun)}, nil, []string{"0s a-1 RolloutBegun"}},
		"fails": {"the beginning comes before the failure", []step{of(0, "a-1", Begun), of(100*ms, "a-1", PhaseAvailable), of(100*ms, "a-1", "Failing"), of(100*ms, "a-1", Succeeded)}, nil,
			[]string{"0s a-1 RolloutBegun", "100ms a-1 PhaseAvailable", "200ms a-1 Failing", "300ms a-1 Succeeded"}},
		"upgrade": {"why the former one is archived, and that it is", []step{
			of(0, "a-2", Begun), of(200*ms, "a-2", Succeeded), of(0, "a-1", Archived, "revision 2 has succeeded"), of(200*ms, "a-1", Archived, "nothing is its any more"),
		}, nil, []string{"200ms a-2 Succeeded", "400ms a-1 revision 2 has succeeded; nothing is its any more"}},
		"slow-archival": {"both are told", []step{of(0, "a-1", Archived, "revision 2 has succeeded"), of(5*second, "a-1", Archived, "nothing is its any more")}, nil,
			[]string{"0s a-1 revision 2 has succeeded", "5s a-1 nothing is its any more"}},
		"archived-at-once": {"whose rollout had begun", []step{of(0, "a-1", Begun), of(100*ms, "a-1", Archived, "nothing is its any more"), of(100*ms, "a-1", "Deleted")}, nil,
			[]string{"0s a-1 RolloutBegun", "100ms a-1 nothing is its any more", "200ms a-1 Deleted"}},
		"others": {"another revision is another rollout", []step{of(0, "a-1", Begun), of(0, "b-1", Begun), of(100*ms, "b-1", Succeeded), of(100*ms, "c-1", "Repaired")}, nil,
			[]string{"100ms b-1 Succeeded", "200ms c-1 Repaired", "0s a-1 RolloutBegun"}},
		"ends-only": {"what was begun by another process", []step{of(0, "a-1", PhaseAvailable), of(0, "a-1", Succeeded)}, nil, []string{"0s a-1 PhaseAvailable", "0s a-1 Succeeded"}},
		"patch": {"an event that is repeated comes after what is held", []step{of(0, "a-1", Begun), {event: func() *corev1.Event { return happened("a-1", "Failing") }, patch: true}}, nil,
			[]string{"0s a-1 RolloutBegun", "patch Failing"}},
		"update": {"and so does one that is changed", []step{of(0, "a-1", Begun), {event: func() *corev1.Event { return happened("a-1", "Failing") }, update: true}}, nil,
			[]string{"0s a-1 RolloutBegun", "update Failing"}},
		"no-answer": {"it is tried again, and in order", []step{of(0, "a-1", Begun), of(3*second, "b-1", "Repaired")}, func(n int) error {
			if n <= 3 {
				return errors.New("connection refused")
			}
			return nil
		}, []string{"0s a-1 RolloutBegun"}},
		"refused": {"what the server refuses does not stop what follows", []step{of(0, "a-1", Begun), of(0, "a-1", PhaseAvailable), of(0, "a-1", "Failing")}, func(n int) error {
			if n == 1 {
				return refused
			}
			return nil
		}, []string{"0s a-1 PhaseAvailable", "0s a-1 Failing"}},
		"never-answered": {"it is given up after two minutes", []step{of(0, "a-1", Begun), of(3*time.Minute, "a-1", "Failing")}, func(n int) error {
			if n <= maxTries {
				return errors.New("connection refused")
			}
			return nil
		}, []string{"3m0s a-1 Failing"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &cluster{began: time.Now()}
				if n := 0; c.fails != nil {
					to.fails = func(*corev1.Event) error { n++; return c.fails(n) }
				}
				sink := New(to)
				for _, s := range c.steps {
					time.Sleep(s.after)
					synctest.Wait()
					event := s.event()
					send := sink.Create
					if s.patch {
						send = func(event *corev1.Event) (*corev1.Event, error) { return sink.Patch(event, nil) }
					} else if s.update {
						send = sink.Update
					}
					got, err := send(event)
					if err != nil && c.fails == nil {
						t.Fatal(err)
					}
					if err == nil && got == nil {
						t.Fatal("no event and no error: the recorder would crash")
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if diff := cmp.Diff(c.want, to.written()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
				if len(sink.held) > 0 {
					t.Errorf("%d beginnings are still held", len(sink.held))
				}
			})
		})
	}
}

// TestNoAnswerToTheEnd: while the server does not answer, the recorder keeps the end, and the sink
// keeps the beginning.
func TestNoAnswerToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		to := &cluster{began: time.Now(), fails: func(*corev1.Event) error {
			if !up.Load() {
				return errors.New("connection refused")
			}
			return nil
		}}
		sink := New(to)
		if _, err := sink.Create(happened("a-1", Begun)); err != nil {
			t.Fatal(err)
		}
		end := happened("a-1", Succeeded)
		if _, err := sink.Create(end); err == nil {
			t.Fatal("the end counts as written")
		}
		up.Store(true)
		time.Sleep(heldFor)
		synctest.Wait()
		if _, err := sink.Create(end); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"0s a-1 RolloutBegun", "0s a-1 Succeeded"}, to.written()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestShutdown: events that are held at the end of the term are written, and later events are not
// held.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &cluster{began: time.Now()}
		sink := New(to)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sink.Run(ctx) }()
		for _, event := range []*corev1.Event{happened("a-1", Begun), happened("a-1", PhaseAvailable)} {
			if _, err := sink.Create(event); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(to.written()) > 0 {
			t.Fatalf("written at once: %q", to.written())
		}
		end()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		want := []string{"0s a-1 RolloutBegun", "0s a-1 PhaseAvailable"}
		if diff := cmp.Diff(want, to.written()); diff != "" {
			t.Error(diff)
		}
		if _, err := sink.Create(happened("b-1", Begun)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(want, "0s b-1 RolloutBegun"), to.written()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestShutdownWithoutAnswer: a hanging server does not delay the end of the process.
func TestShutdownWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := hanging{asked: make(chan struct{}, 1)}
		sink := New(hangs)
		if _, err := sink.Create(happened("a-1", Begun)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = sink.Create(happened("b-1", "Repaired")) }()
		<-hangs.asked
		ctx, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		if err := sink.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != endedWithin {
			t.Errorf("it took %s, want %s", took, endedWithin)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// hanging does not answer before its caller gives up.
type hanging struct {
	Events
	asked chan struct{}
}

func (h hanging) CreateWithEventNamespaceWithContext(ctx context.Context, _ *corev1.Event) (*corev1.Event, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestMany: beyond the bound, beginnings are written at once.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &cluster{began: time.Now()}
		sink := New(to)
		const more = 5
		for i := range maxHeld + more {
			if _, err := sink.Create(happened(fmt.Sprintf("a-%d", i), Begun)); err != nil {
				t.Fatal(err)
			}
		}
		if len(to.written()) != more {
			t.Errorf("%d were written at once, want %d", len(to.written()), more)
		}
		time.Sleep(heldFor)
		synctest.Wait()
		if len(to.written()) != maxHeld+more {
			t.Errorf("%d were written, want %d", len(to.written()), maxHeld+more)
		}
	})
}
