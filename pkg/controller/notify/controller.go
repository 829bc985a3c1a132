// Package notify is the loop of the leader that records facts, and sends them to notification
// receivers.
//
// controller.go watches the Secrets of receivers, record.go compares the facts of objects with the
// recorded facts, and deliver.go sends to one receiver. Without receivers the loop only watches for
// them.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/pkg/store/outbox"
)

const (
	// MaxReceivers bounds the receivers: only the first receivers by name are served.
	MaxReceivers          = 10
	retryFirst, retryMost = time.Second, 5 * time.Minute
	// settle is the delay before the first attempt, so that simultaneous facts are sent together.
	settle = 2 * time.Second
)

// Reasons of events on the Secrets of receivers.
const (
	eventInvalid   = "ReceiverInvalid"
	eventFailed    = "NotificationFailed"
	eventDelivered = "NotificationDelivered"
)

// Informer accepts event handlers.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Options of a Controller; all are required.
type Options struct {
	// Secrets reads the Secrets of Namespace.
	Secrets   kubernetes.Interface
	Namespace string
	// Revisions and Plans are the informers behind Reader.
	Revisions, Plans Informer
	Reader           client.Reader
	Outbox           *outbox.Outbox
	// Source is the source attribute of all events.
	Source string
	Dialer outbound.Dialer
	// Events records events about the Secrets of receivers.
	Events record.EventRecorder
	Clock  clock.WithTicker
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	secrets *objectwatch.Watch[*corev1.Secret]
	// changed receives an element when the receivers may have changed.
	changed chan struct{}
	queue   workqueue.TypedRateLimitingInterface[key]
	sent    *prometheus.CounterVec

	mu sync.Mutex
	// recording is true while receivers exist. since is the time when recording began.
	recording bool
	since     time.Time
	// noted holds the objects whose facts another loop reports, by name.
	noted     map[string]noted
	receivers map[string]*receiver
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	c := &Controller{Options: o, changed: make(chan struct{}, 1), receivers: map[string]*receiver{}, noted: map[string]noted{}, sent: metrics.Counter(metrics.Notifications)}
	c.secrets = objectwatch.New(o.Secrets, o.Secrets.CoreV1().Secrets(o.Namespace), &corev1.Secret{}, objectwatch.Options{
		Selector: notify.ReceiverLabel + "=true", Changed: c.look,
	})
	c.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](retryFirst, retryMost),
		workqueue.TypedRateLimitingQueueConfig[key]{Clock: o.Clock})
	return c
}

func (c *Controller) look() { signal(c.changed) }

// overtaken starts again from the stored state, because another process leads, or has led in
// between.
func (c *Controller) overtaken() {
	c.setRecording(false, time.Time{})
	c.look()
}

// Run records and sends until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("notify"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	if err := c.watch(); err != nil {
		return err
	}
	running.Go(func() { c.secrets.Run(ctx) })
	running.Go(func() {
		for c.next(ctx) {
		}
	})
	for {
		var again <-chan time.Time
		err := c.follow(ctx, &running)
		if errors.Is(err, outbox.ErrOvertaken) {
			c.setRecording(false, time.Time{}) // the next attempt starts again
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The receivers of notifications are not followed; trying again")
			again = c.Clock.After(retryFirst)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		case <-again:
		}
	}
}

// follow matches the receivers to the Secrets:
//
//  1. Without Secrets, it stops recording and clears the outbox.
//  2. With the first Secret, it starts recording.
//  3. It makes sure that each receiver has a cursor and a sender.
func (c *Controller) follow(ctx context.Context, running *sync.WaitGroup) error {
	secrets, err := c.secrets.List()
	if err != nil {
		return nil //nolint:nilerr // the Secrets are unknown; the watch will report them
	}
	slices.SortFunc(secrets, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	if len(secrets) > MaxReceivers {
		for _, secret := range secrets[MaxReceivers:] {
			c.event(secret, corev1.EventTypeWarning, eventInvalid, fmt.Sprintf("%d receivers are served, the first ones by name; this one is not", MaxReceivers))
		}
		secrets = secrets[:MaxReceivers]
	}
	if len(secrets) == 0 {
		c.stop(nil)
		c.setRecording(false, time.Time{})
		return c.Outbox.Clear(ctx)
	}
	if !c.isRecording() {
		since, err := c.Outbox.Begin(ctx, c.Clock.Now())
		if err != nil {
			return err
		}
		c.setRecording(true, since)
		if err := c.sweep(ctx); err != nil {
			c.setRecording(false, time.Time{})
			return err
		}
	}
	uids := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		uids = append(uids, string(secret.UID))
	}
	if err := c.Outbox.Receivers(ctx, uids); err != nil {
		return err
	}
	c.stop(uids)
	for _, secret := range secrets {
		c.serve(ctx, running, secret)
	}
	c.wakeAll() // a receiver may have slept while the pending entries were unknown
	return nil
}

// event records an event about a Secret. The recorder's scheme has only Penstock's own types.
func (c *Controller) event(secret *corev1.Secret, kind, reason, message string) {
	c.Events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}, kind, reason, message)
}

// serve makes sure that a receiver runs with the present Secret.
func (c *Controller) serve(ctx context.Context, running *sync.WaitGroup, secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := string(secret.UID)
	r := c.receivers[uid]
	if r == nil {
		var while context.Context
		r = &receiver{Controller: c, uid: uid, wake: make(chan struct{}, 1), renewed: make(chan struct{}, 1)}
		while, r.stop = context.WithCancel(ctx)
		c.receivers[uid] = r
		defer running.Go(func() { r.run(while) })
	}
	r.set(secret)
}

func (c *Controller) stop(except []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, r := range c.receivers {
		if !slices.Contains(except, uid) {
			r.stop()
			delete(c.receivers, uid)
		}
	}
}

func (c *Controller) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.receivers {
		signal(r.wake)
	}
}

func (c *Controller) isRecording() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recording
}

func (c *Controller) setRecording(is bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording, c.since = is, since
}

// Pending is the number of entries that a receiver has not accepted, and the time since when
// attempts fail; zero after a success.
type Pending struct {
	Receiver     string
	Entries      int
	FailingSince time.Time
}

// Pending returns the pending entries of all receivers.
func (c *Controller) Pending() []Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Pending, 0, len(c.receivers))
	for _, r := range c.receivers {
		out = append(out, r.pending())
	}
	return out
}
