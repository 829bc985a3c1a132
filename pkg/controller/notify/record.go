package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/store/outbox"
)

const (
	// repeatAfter is the time in which a fact that ended and returned is not recorded again.
	repeatAfter = time.Hour
	// forgetAfter is the age after which a starting process drops the marks of a ClusterExtension.
	forgetAfter = 30 * 24 * time.Hour
)

// Kinds of objects with facts.
const (
	kindRevision  = "revision"
	kindPlan      = "plan"
	kindExtension = "extension"
	// kindGone is the kind of a deleted object: its name is the name of its marks.
	kindGone = "gone"
)

// ofExtension is the prefix of the names of ClusterExtensions' marks. Other marks are named by uid.
const ofExtension = "extension/"

type key struct{ kind, name string }

// watch enqueues each revision and plan that is created, changed or deleted.
func (c *Controller) watch() error {
	for kind, informer := range map[string]Informer{kindRevision: c.Revisions, kindPlan: c.Plans} {
		if _, err := informer.AddEventHandler(c.handler(kind)); err != nil {
			return fmt.Errorf("watching %ss for notifications: %w", kind, err)
		}
	}
	return nil
}

func (c *Controller) handler(kind string) cache.ResourceEventHandler {
	add := func(object any) {
		if o, ok := object.(metav1.Object); ok && c.isRecording() {
			c.queue.Add(key{kind, o.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok && c.isRecording() {
			c.queue.Add(key{kindGone, string(o.GetUID())})
		}
	}}
}

// sweep enqueues all objects when recording begins, and drops the marks of deleted objects.
func (c *Controller) sweep(ctx context.Context) error {
	var revisions olmv1alpha1.ClusterExtensionRevisionList
	var plans hcov1alpha1.ConfigurationPlanList
	for _, list := range []client.ObjectList{&revisions, &plans} {
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing objects for notifications: %w", err)
		}
	}
	there := map[string]bool{}
	for i := range revisions.Items {
		there[string(revisions.Items[i].UID)] = true
		c.queue.Add(key{kindRevision, revisions.Items[i].Name})
	}
	for i := range plans.Items {
		there[string(plans.Items[i].UID)] = true
		c.queue.Add(key{kindPlan, plans.Items[i].Name})
	}
	c.mu.Lock()
	for name := range c.noted {
		c.queue.Add(key{kindExtension, name})
	}
	c.mu.Unlock()
	for object, latest := range c.Outbox.Marked() {
		// No event reports the ClusterExtensions that were deleted while no process ran.
		if !there[object] && (!strings.HasPrefix(object, ofExtension) || c.Clock.Now().Sub(latest) > forgetAfter) {
			c.queue.Add(key{kindGone, object})
		}
	}
	return nil
}

// Note records the facts of a ClusterExtension, which another controller reports. A deleted one has no
// uid.
func (c *Controller) Note(subject notify.Subject, facts []notify.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.noted, subject.Name)
	if len(facts) > 0 {
		c.noted[subject.Name] = noted{subject, facts}
	}
	switch {
	case !c.recording:
	case subject.UID == "":
		c.queue.Add(key{kindGone, ofExtension + subject.Name})
	case len(facts) > 0:
		c.queue.Add(key{kindExtension, subject.Name})
	}
}

// noted is the report of another loop about an object.
type noted struct {
	subject notify.Subject
	facts   []notify.Fact
}

// next records the facts of the next object of the queue.
func (c *Controller) next(ctx context.Context) bool {
	at, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(at)
	err := c.record(ctx, at)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, outbox.ErrOvertaken):
		c.overtaken()
	case err != nil:
		klog.FromContext(ctx).Error(err, "A notification is not recorded; trying again", "kind", at.kind, "name", at.name)
		c.queue.AddRateLimited(at)
	default:
		c.queue.Forget(at)
	}
	return true
}

// record records the facts of an object that are not recorded yet.
func (c *Controller) record(ctx context.Context, at key) error {
	c.mu.Lock()
	recording, since := c.recording, c.since
	c.mu.Unlock()
	if !recording {
		return nil
	}
	if at.kind == kindGone {
		return c.Outbox.Forget(ctx, at.name)
	}
	subject, facts, err := c.facts(ctx, at)
	if err != nil || len(facts) == 0 {
		return err
	}
	object := subject.UID
	if at.kind == kindExtension {
		object = ofExtension + at.name
	}
	marks, fresh, rest := compare(c.Outbox.Marks(object), facts, since, c.Clock.Now())
	if rest > 0 {
		c.queue.AddAfter(at, rest)
	}
	if len(fresh) == 0 {
		return nil
	}
	bodies := make([]json.RawMessage, 0, len(fresh))
	for _, fact := range fresh {
		body, err := notify.Encode(notify.Of(c.Source, subject, fact))
		if err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	if err := c.Outbox.Append(ctx, object, marks, bodies...); err != nil {
		return err
	}
	c.wakeAll()
	return nil
}

// compare returns the facts to send, the marks that record them, and the delay before the next
// comparison; 0 for none. A fact that returns within repeatAfter of its last notification is sent
// after that time, if it still holds. A fact that began and ended before since, or within its
// second, is not sent.
func compare(marks []outbox.Mark, facts []notify.Fact, since, now time.Time) (_ []outbox.Mark, fresh []notify.Fact, rest time.Duration) {
	for _, fact := range facts {
		if !fact.Type.Lasts() && !fact.At.After(since) {
			continue
		}
		mark := outbox.Mark{Key: string(fact.Type) + "/" + fact.Reason, Since: fact.Since.Unix(), At: now.Unix()}
		i := slices.IndexFunc(marks, func(m outbox.Mark) bool { return m.Key == mark.Key })
		switch {
		case i < 0:
			marks = append(marks, mark)
		case marks[i].Since == mark.Since:
			continue
		default:
			// A mark from the future, written by a fast clock, delays nothing.
			if age := now.Sub(time.Unix(marks[i].At, 0)); age >= 0 && age < repeatAfter {
				if rest == 0 || repeatAfter-age < rest {
					rest = repeatAfter - age
				}
				continue
			}
			marks[i] = mark
		}
		fresh = append(fresh, fact)
	}
	return marks, fresh, rest
}

// facts returns the facts of an object; none for a deleted one.
func (c *Controller) facts(ctx context.Context, at key) (notify.Subject, []notify.Fact, error) {
	var err error
	var subject notify.Subject
	var facts []notify.Fact
	switch at.kind {
	case kindRevision:
		revision := &olmv1alpha1.ClusterExtensionRevision{}
		if err = c.Reader.Get(ctx, client.ObjectKey{Name: at.name}, revision); err == nil {
			subject, facts = notify.OfRevision(revision)
		}
	case kindPlan:
		plan := &hcov1alpha1.ConfigurationPlan{}
		if err = c.Reader.Get(ctx, client.ObjectKey{Name: at.name}, plan); err == nil {
			subject, facts = notify.OfPlan(plan)
		}
	case kindExtension:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.noted[at.name].subject, c.noted[at.name].facts, nil
	}
	if apierrors.IsNotFound(err) {
		return subject, nil, nil
	}
	if err != nil {
		return subject, nil, fmt.Errorf("reading %s %s: %w", at.kind, at.name, err)
	}
	return subject, facts, nil
}
