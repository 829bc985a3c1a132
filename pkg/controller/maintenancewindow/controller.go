// Package maintenancewindow watches the MaintenanceWindows of the host. It decides for other
// controllers whether an upgrade may begin, notifies them of changes, and writes the status of the
// windows.
package maintenancewindow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/text"
)

// FieldManager owns Penstock's fields of the status.
const FieldManager = "penstock-maintenance-windows"

const longestMessage = 1000

// Reasons of conditions.
const (
	reasonValid    = "Valid"
	reasonInvalid  = "Invalid"
	reasonOpen     = "Open"
	reasonClosed   = "Closed"
	reasonOver     = "Over"
	reasonNotKnown = "NotKnown"
)

// Options of a Controller; all are required.
type Options struct {
	// Windows reads the windows and writes their status. Definitions watches their
	// CustomResourceDefinition.
	Windows     dynamic.Interface
	Definitions metadata.Interface
	// Clock is the clock of this machine. Skew returns how far it is ahead of the host's clock.
	// Windows use the host's clock.
	Clock clock.WithTicker
	Skew  func() time.Duration
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	// queue holds the names of windows whose status may have changed.
	queue maker.Queue

	// reading is held from a list until its result is stored.
	reading sync.Mutex

	mu sync.Mutex
	// known is true once the windows are known, or their absence is.
	known    bool
	informer cache.SharedIndexInformer
	windows  []maintenancewindow.Window
	// open holds the names of windows that were open in their last pass.
	open map[string]bool
	// told holds the functions that are called when decisions may have changed.
	told []func()
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	return &Controller{Options: o, open: map[string]bool{}, queue: maker.NewQueue(o.Clock)}
}

// OnChange registers a function that is called when decisions may have changed. It must not block.
func (c *Controller) OnChange(tell func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, tell)
}

// Decide reports whether an upgrade of an extension with these labels may begin now. Before the
// windows are known, no upgrade may begin.
func (c *Controller) Decide(labels map[string]string) maintenancewindow.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return maintenancewindow.Decision{Why: "it is not known yet which MaintenanceWindows there are"}
	}
	return maintenancewindow.Decide(c.windows, labels, c.now())
}

// now returns the time by the clock of the host.
func (c *Controller) now() time.Time { return c.Clock.Now().Add(-c.Skew()) }

// Run watches windows until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("maintenance-windows"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown() // ends the worker
	running.Go(func() {
		objectwatch.WhileDefined(ctx, c.Definitions, maintenancewindow.DefinitionName, c.defined, c.watch)
	})
	running.Go(func() {
		maker.Work(ctx, c.queue, c.reconcile, "The status of a MaintenanceWindow was not written; trying again")
	})
	<-ctx.Done()
	return nil
}

// defined is called with true when the host serves MaintenanceWindows.
func (c *Controller) defined(is bool) {
	c.set(nil, nil, !is)
}

// set stores the present windows, and notifies other controllers.
func (c *Controller) set(informer cache.SharedIndexInformer, windows []maintenancewindow.Window, known bool) {
	c.mu.Lock()
	c.informer, c.windows, c.known = informer, windows, known
	c.mu.Unlock()
	c.tell()
}

func (c *Controller) tell() {
	c.mu.Lock()
	told := slices.Clone(c.told)
	c.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

func (c *Controller) watch(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Windows, c.Windows.Resource(maintenancewindow.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Failed: objectwatch.NotServedYet})
	changed := func(object any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil || ctx.Err() != nil || !informer.HasSynced() {
			return
		}
		c.read(informer)
		c.queue.Add(name)
	}
	// AddEventHandler cannot fail before the informer runs.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed,
		UpdateFunc: func(old, object any) {
			before, isOld := old.(*unstructured.Unstructured)
			if now, is := object.(*unstructured.Unstructured); !is || !isOld || before.GetGeneration() != now.GetGeneration() || before.GetUID() != now.GetUID() {
				changed(object)
			}
		},
	})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	c.read(informer)
	for _, name := range informer.GetStore().ListKeys() {
		c.queue.Add(name)
	}
}

func (c *Controller) read(informer cache.SharedIndexInformer) {
	c.reading.Lock()
	defer c.reading.Unlock()
	var objects []unstructured.Unstructured
	for _, object := range objectwatch.All[*unstructured.Unstructured](informer) {
		objects = append(objects, *object)
	}
	c.set(informer, maintenancewindow.NewAll(objects), true)
}

// looks bounds the delay before a window is checked again, because clocks are changed and machines
// sleep.
const looks = 10 * time.Minute

// reconcile writes the status of a window, and notifies other controllers when it has opened or
// closed.
func (c *Controller) reconcile(ctx context.Context, name string) error {
	c.mu.Lock()
	informer, now := c.informer, c.now()
	at := slices.IndexFunc(c.windows, func(w maintenancewindow.Window) bool { return w.Name == name })
	if informer == nil || at < 0 {
		delete(c.open, name)
		c.mu.Unlock()
		return nil
	}
	window := c.windows[at]
	_, isOpen := window.At(now)
	turned := c.open[name] != isOpen
	c.open[name] = isOpen
	c.mu.Unlock()
	if turned {
		c.tell()
	}
	found, exists, err := informer.GetStore().GetByKey(name)
	object, is := found.(*unstructured.Unstructured)
	if err != nil || !exists || !is {
		return err
	}
	status, change := statusAt(window, object, now)
	if !change.IsZero() {
		c.queue.AddAfter(name, min(max(change.Sub(now), time.Second), looks))
	}
	return c.write(ctx, object, status, now)
}

// statusAt returns the status of a window at a moment, and the time of the next change.
func statusAt(window maintenancewindow.Window, object *unstructured.Unstructured, now time.Time) (maintenancewindow.Status, time.Time) {
	accepted := metav1.Condition{Type: maintenancewindow.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonValid,
		Message: "the window can be read", ObservedGeneration: object.GetGeneration()}
	open := metav1.Condition{Type: maintenancewindow.ConditionOpen, Status: metav1.ConditionFalse, ObservedGeneration: object.GetGeneration()}
	if problem := window.Problem(); problem != "" {
		accepted.Status, accepted.Reason = metav1.ConditionFalse, reasonInvalid
		accepted.Message = text.Line("upgrades of its extensions wait until it can be read: "+problem, longestMessage)
		open.Status, open.Reason, open.Message = metav1.ConditionUnknown, reasonNotKnown, "the window cannot be read"
		return maintenancewindow.Status{Conditions: []metav1.Condition{accepted, open}}, time.Time{}
	}
	span, is := window.At(now)
	var status maintenancewindow.Status
	var change time.Time
	switch {
	case is:
		open.Status, open.Reason, open.Message = metav1.ConditionTrue, reasonOpen, "until "+span.Closes.UTC().Format(time.RFC3339)
		change = span.Closes
	case span.Opens.IsZero():
		open.Reason, open.Message = reasonOver, "it does not open any more"
	default:
		open.Reason, open.Message = reasonClosed, "until "+span.Opens.UTC().Format(time.RFC3339)
		change = span.Opens
	}
	if !change.IsZero() {
		status.OpensAt, status.ClosesAt = &metav1.Time{Time: span.Opens.UTC()}, &metav1.Time{Time: span.Closes.UTC()}
	}
	status.Conditions = []metav1.Condition{accepted, open}
	return status, change
}

func (c *Controller) write(ctx context.Context, object *unstructured.Unstructured, status maintenancewindow.Status, now time.Time) error {
	var has maintenancewindow.Status
	if read, err := maintenancewindow.From(object); err == nil {
		has = read.Status
	}
	changed := !has.OpensAt.Equal(status.OpensAt) || !has.ClosesAt.Equal(status.ClosesAt)
	for _, condition := range status.Conditions {
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		changed = meta.SetStatusCondition(&has.Conditions, condition) || changed
	}
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": map[string]any{
		"conditions": has.Conditions, "opensAt": status.OpensAt, "closesAt": status.ClosesAt, // null removes them
	}})
	if err != nil {
		return fmt.Errorf("encoding the status of MaintenanceWindow %s: %w", object.GetName(), err)
	}
	_, err = c.Windows.Resource(maintenancewindow.Resource).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the window was deleted or replaced
	}
	return err
}
