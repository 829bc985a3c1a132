package notify

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/store/outbox"
	"github.com/penstock-project/penstock/pkg/text"
)

const longestNote = 512

// receiver sends to one receiver, one request at a time.
type receiver struct {
	*Controller
	uid  string
	stop context.CancelFunc
	// wake receives an element when there may be something to send, renewed when the Secret
	// changed.
	wake, renewed chan struct{}

	mu sync.Mutex
	// secret is the last Secret, and to is the receiver in it. invalid is the error if it has none.
	secret  *corev1.Secret
	to      notify.Receiver
	invalid error
	// failed is the error of the last attempt. failing is the time of the first failure since the
	// last success.
	failed  string
	failing time.Time
}

func (r *receiver) set(secret *corev1.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secret != nil && r.secret.ResourceVersion == secret.ResourceVersion {
		return
	}
	r.secret = secret
	r.to, r.invalid = notify.ReceiverOf(secret)
	signal(r.wake)
	signal(r.renewed)
}

// signal adds an element to a channel, unless one is pending.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// run sends until ctx ends. It repeats failed attempts with growing delays. A changed Secret is
// tried at once.
func (r *receiver) run(ctx context.Context) {
	backoff := retryFirst
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.pause(ctx, settle, nil)
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = r.deliver(ctx); err == nil {
				backoff = retryFirst
				continue
			}
			if errors.Is(err, outbox.ErrOvertaken) {
				r.overtaken()
			}
			after := wait.Jitter(backoff, 0.2)
			if refused := (*notify.RefusedError)(nil); errors.As(err, &refused) {
				after = max(after, refused.RetryAfter)
			}
			backoff, more = min(2*backoff, retryMost), true
			r.pause(ctx, after, r.renewed)
		}
	}
}

func (r *receiver) pause(ctx context.Context, d time.Duration, until <-chan struct{}) {
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-until:
	case <-timer.C():
	}
}

// deliver sends one request, and moves the cursor after the receiver has accepted it:
//
//  1. The first request tests the connection.
//  2. It sends few entries one by one, and many entries as one summary.
//
// It reports whether there may be more to send.
func (r *receiver) deliver(ctx context.Context) (bool, error) {
	cursor, entries, known := r.Outbox.Pending(r.uid)
	if !known || cursor.Greeted && len(entries) == 0 {
		return false, nil
	}
	r.mu.Lock()
	to, secret, err := r.to, r.secret, r.invalid
	r.mu.Unlock()
	if err != nil {
		r.report(ctx, secret, err)
		return false, err
	}
	body, moved, err := r.following(ctx, to.Name, cursor, entries)
	if err != nil {
		return false, err
	}
	err = to.Send(ctx, r.Dialer, body, r.Clock.Now())
	if ctx.Err() != nil {
		return false, nil // it is unknown whether the receiver accepted it: it is sent again
	}
	r.count(to.Name, err)
	r.report(ctx, secret, err)
	if err != nil {
		return false, err
	}
	return true, r.Outbox.Move(ctx, r.uid, moved)
}

// following returns the next body for a receiver, and the cursor after its acceptance.
func (r *receiver) following(ctx context.Context, name string, cursor outbox.Cursor, entries []outbox.Entry) ([]byte, outbox.Cursor, error) {
	moved := outbox.Cursor{Next: cursor.Next, Greeted: true}
	if !cursor.Greeted {
		body, err := notify.Encode(notify.Connected(r.Source, name, r.uid, r.Clock.Now()))
		return body, moved, err
	}
	leftOut := entries[0].Number - cursor.Next
	if cursor.Until == 0 && !notify.NeedsSummary(len(entries), leftOut) {
		moved.Next = entries[0].Number + 1
		return entries[0].Body, moved, nil
	}
	// A repeated summary has the same content while the log still has the entries.
	if last := entries[len(entries)-1].Number; cursor.Until == 0 || cursor.Until <= entries[0].Number {
		cursor.Until = last + 1
		if err := r.Outbox.Move(ctx, r.uid, cursor); err != nil {
			return nil, moved, err
		}
	}
	moved.Next = cursor.Until
	var bodies []json.RawMessage
	for _, entry := range entries {
		if entry.Number < cursor.Until {
			bodies = append(bodies, entry.Body)
		}
	}
	body, err := notify.Encode(notify.Summary(r.Source, r.uid, cursor.Next, cursor.Until-1, bodies, leftOut, r.Clock.Now()))
	return body, moved, err
}

// report records on the Secret when deliveries to a receiver begin to fail, and when they work
// again.
func (r *receiver) report(ctx context.Context, secret *corev1.Secret, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.failed
	if r.failed = ""; err != nil {
		r.failed = text.Clip(err.Error(), longestNote)
	}
	switch {
	case r.failed == before:
	case r.failed == "":
		r.failing = time.Time{}
		r.event(secret, corev1.EventTypeNormal, eventDelivered, "Notifications are delivered again")
	default:
		if before == "" {
			r.failing = r.Clock.Now()
		}
		klog.FromContext(ctx).Error(err, "A notification is not delivered; trying again", "receiver", secret.Name)
		r.event(secret, corev1.EventTypeWarning, eventFailed, "A notification is not delivered, and is sent again: "+r.failed)
	}
}

func (r *receiver) pending() Pending {
	_, entries, _ := r.Outbox.Pending(r.uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	return Pending{Receiver: r.secret.Name, Entries: len(entries), FailingSince: r.failing}
}
