package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Informer is the watch behind the cache of revisions. controller-runtime's cache.Informer
// implements it.
type Informer interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
	HasSynced() bool
}

// Options of the metrics of one term. All are required.
type Options struct {
	// Registry receives the metrics; it belongs to the term.
	Registry prometheus.Registerer
	Informer Informer
	// Reader reads revisions from the informer's cache.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Requests counts the requests to the target cluster.
	Requests *targetclient.Counter
}

// Metrics holds the metrics of one term.
type Metrics struct {
	*engineMetrics
}

var _ rollout.Metrics = &Metrics{}

// Add registers the metrics of a term. It returns an observer for the engine.
func Add(o Options) (*Metrics, error) {
	engine := newEngineMetrics(o.Clock)
	history := newHistory(engine.forget)
	if _, err := o.Informer.AddEventHandler(history); err != nil {
		return nil, fmt.Errorf("watching revisions for metrics: %w", err)
	}
	collectors := []prometheus.Collector{
		newRevisions(o.Informer.HasSynced, o.Reader, o.Clock),
		history, history.durations,
		engine.phases, engine.repairs, engine.contests,
		&requests{counter: o.Requests, total: catalogue.Desc(catalogue.Requests)},
	}
	for _, collector := range collectors {
		if err := o.Registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return &Metrics{engine}, nil
}
