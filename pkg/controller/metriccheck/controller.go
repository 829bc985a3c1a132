// Package metriccheck watches the MetricChecks of the host, and runs them for rollouts.
package metriccheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	workers = 4
	// remembered bounds the answers that are kept until a status has them.
	remembered = 1024
	// longestMessage bounds the message of a measurement, in bytes.
	longestMessage = 512
)

// Options of a Controller; all are required, except Notify.
type Options struct {
	// Checks reads MetricChecks. Definitions watches their CustomResourceDefinition. Secrets reads
	// tokens in Namespace.
	Checks      dynamic.Interface
	Definitions metadata.Interface
	Secrets     kubernetes.Interface
	Namespace   string
	Dialer      outbound.Dialer
	Clock       clock.WithTicker
	// Notify is called with the extension of an answer. It must not block for long.
	Notify func(extension string)
}

// Subject is a rollout that MetricChecks judge.
type Subject struct {
	Extension string
	Revision  types.UID
	// Namespaces are the namespaces of its workloads.
	Namespaces []string
	// Since is the time when all its objects became Available.
	Since time.Time
	// Checks lists the names of MetricChecks.
	Checks []string
}

type question struct {
	extension, namespaces, check string
	revision                     types.UID
	since                        int64
}

func (q question) id() string { return string(q.revision) + "/" + q.check }

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue   workqueue.TypedDelayingInterface[question]
	changed chan event.TypedGenericEvent[string]
	counted *prometheus.CounterVec
	// answers maps the id of a question to a v1alpha1.MetricMeasurement.
	answers *lru.Cache

	mu sync.Mutex
	// known is true once the MetricChecks are known, or their absence is.
	known    bool
	informer cache.SharedIndexInformer
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	return &Controller{
		Options: o, answers: lru.New(remembered), counted: metrics.Counter(metrics.MetricAnswers), changed: make(chan event.TypedGenericEvent[string], 1),
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[question]{Clock: o.Clock}),
	}
}

// Register registers the metrics for a term.
func (c *Controller) Register(registry prometheus.Registerer) error {
	if err := registry.Register(c.counted); err != nil {
		return fmt.Errorf("registering metrics of MetricChecks: %w", err)
	}
	return nil
}

// Changed receives an element when MetricChecks have changed.
func (c *Controller) Changed() <-chan event.TypedGenericEvent[string] { return c.changed }

// Run watches MetricChecks and runs their queries until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("metric-checks"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown() // ends the workers
	running.Go(func() {
		objectwatch.WhileDefined(ctx, c.Definitions, metriccheck.DefinitionName, func(is bool) { c.set(nil, !is) }, c.watch)
	})
	for range workers {
		running.Go(func() {
			for {
				q, shutdown := c.queue.Get()
				if shutdown {
					return
				}
				c.answer(ctx, q)
				c.queue.Done(q)
			}
		})
	}
	<-ctx.Done()
	return nil
}

func (c *Controller) set(informer cache.SharedIndexInformer, known bool) {
	c.mu.Lock()
	c.informer, c.known = informer, known
	c.mu.Unlock()
	select {
	case c.changed <- event.TypedGenericEvent[string]{}:
	default: // one pending element is enough
	}
}

func (c *Controller) watch(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Checks, c.Checks.Resource(metriccheck.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Failed: objectwatch.NotServedYet})
	changed := func(any) {
		if ctx.Err() == nil && informer.HasSynced() {
			c.set(informer, true)
		}
	}
	// AddEventHandler cannot fail before the informer runs.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, now any) { changed(now) },
	})
	objectwatch.Follow(ctx, func() { c.set(informer, true) }, informer)
}

// check returns the present MetricCheck, or the reason why it cannot be queried. known is false
// while the MetricChecks are unknown.
func (c *Controller) check(name string) (check *metriccheck.MetricCheck, known bool, err error) {
	c.mu.Lock()
	informer, known := c.informer, c.known
	c.mu.Unlock()
	if !known {
		return nil, false, nil
	}
	var object *unstructured.Unstructured
	if informer != nil {
		object, _ = objectwatch.Find[*unstructured.Unstructured](informer, name)
	}
	if object == nil {
		return nil, true, errors.New("there is no MetricCheck of this name")
	}
	check, err = metriccheck.From(object)
	return check, true, err
}

// Measured returns the last measurements for a rollout. kept are the measurements in its status. A
// measurement by another spec of the MetricCheck does not count.
func (c *Controller) Measured(of Subject, kept []v1alpha1.MetricMeasurement) []v1alpha1.MetricMeasurement {
	var all []v1alpha1.MetricMeasurement
	for _, name := range of.Checks {
		last := metriccheck.Find(kept, name)
		check, known, err := c.check(name)
		switch {
		case !known:
		case err != nil:
			last = &v1alpha1.MetricMeasurement{Name: name, Time: metav1.NewTime(of.Since), Verdict: v1alpha1.MetricUnknown, Message: text.Line(err.Error(), longestMessage)}
		default:
			digest := check.Spec.Digest()
			if last != nil && last.Digest != digest {
				last = nil
			}
			answer, _ := c.answers.Get(question{revision: of.Revision, check: name}.id())
			if newer, is := answer.(v1alpha1.MetricMeasurement); is && newer.Digest == digest && (last == nil || last.Time.Before(&newer.Time)) {
				last = &newer
			}
		}
		if last != nil {
			all = append(all, *last)
		}
	}
	return all
}

// Ask starts the queries that are due, and returns the time of the next one; zero for none. Answers
// cause a notification. A rollout that failed is not queried.
func (c *Controller) Ask(of Subject, measured []v1alpha1.MetricMeasurement) time.Time {
	if verdict, _ := metriccheck.Judge(of.Checks, measured, of.Since, of.Since); verdict == v1alpha1.MetricNo {
		return time.Time{}
	}
	now, next := c.Clock.Now(), time.Time{}
	for _, name := range of.Checks {
		check, known, err := c.check(name)
		if !known || err != nil {
			continue // a change of MetricChecks causes the next pass
		}
		due := of.Since.Add(time.Duration(check.Spec.InitialDelaySeconds) * time.Second)
		if last := metriccheck.Find(measured, name); last != nil && last.Time.Add(metriccheck.Interval).After(due) {
			due = last.Time.Add(metriccheck.Interval)
		}
		switch {
		case !due.After(now):
			c.queue.Add(question{of.Extension, strings.Join(of.Namespaces, ","), name, of.Revision, of.Since.Unix()})
		case next.IsZero() || due.Before(next):
			next = due
		}
	}
	return next
}

// answer runs one query, at most once in an interval.
func (c *Controller) answer(ctx context.Context, q question) {
	check, known, err := c.check(q.check)
	if !known || err != nil || ctx.Err() != nil {
		return
	}
	digest := check.Spec.Digest()
	if last, is := c.answers.Get(q.id()); is {
		before, ok := last.(v1alpha1.MetricMeasurement)
		if rest := before.Time.Add(metriccheck.Interval).Sub(c.Clock.Now()); ok && before.Digest == digest && rest > 0 && rest <= metriccheck.Interval {
			if before.Time.Unix() < q.since { // the objects became Available again since
				c.queue.AddAfter(q, rest)
			}
			return
		}
	}
	m := v1alpha1.MetricMeasurement{Name: q.check, Time: metav1.NewTime(c.Clock.Now()).Rfc3339Copy(), Verdict: v1alpha1.MetricUnknown, Digest: digest}
	token, err := c.token(ctx, check.Spec.TokenSecret)
	var query string
	if err == nil {
		query, err = check.Spec.Expression(q.extension, slices.DeleteFunc(strings.Split(q.namespaces, ","), func(n string) bool { return n == "" }))
	}
	if err != nil {
		m.Message = err.Error()
	} else {
		m.Verdict, m.Value, m.Message = check.Spec.Ask(ctx, c.Dialer, query, token, time.Unix(q.since, 0), c.Clock.Now)
	}
	if ctx.Err() != nil {
		return // the service has not answered
	}
	m.Message = text.Line(m.Message, longestMessage)
	c.counted.WithLabelValues(q.check, string(m.Verdict)).Inc()
	c.answers.Add(q.id(), m)
	c.Notify(q.extension)
}

func (c *Controller) token(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	secret, err := c.Secrets.CoreV1().Secrets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return "", fmt.Errorf("reading its token: %w", err)
	case secret.Labels[metriccheck.TokenLabel] != "true":
		return "", fmt.Errorf("the Secret %s lacks the label %s: %q", name, metriccheck.TokenLabel, "true")
	}
	token := strings.TrimSpace(string(secret.Data[metriccheck.TokenKey]))
	if token == "" {
		return "", fmt.Errorf("the Secret %s has no key %s", name, metriccheck.TokenKey)
	}
	return token, nil
}
