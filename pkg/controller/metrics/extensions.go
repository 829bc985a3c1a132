package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// ExtensionMetrics holds the metrics of ClusterExtensions in one term.
type ExtensionMetrics struct {
	all             func() []*unstructured.Unstructured
	info, condition *prometheus.Desc
	resolves, pulls *prometheus.HistogramVec
}

// AddExtensions registers the metrics of ClusterExtensions for a term. The function all returns the
// known extensions from a cache; callers do not change them. AddExtensions returns an observer for
// durations.
func AddExtensions(registry prometheus.Registerer, all func() []*unstructured.Unstructured) (*ExtensionMetrics, error) {
	m := &ExtensionMetrics{
		all: all, info: catalogue.Desc(catalogue.ExtensionInfo), condition: catalogue.Desc(catalogue.ExtensionCondition),
		// A resolution is a computation. A pull uses the network, and can be half a gigabyte.
		resolves: catalogue.Histogram(catalogue.ExtensionResolves, []float64{.001, .005, .02, .1, .5, 1, 5, 30}),
		pulls:    catalogue.Histogram(catalogue.ExtensionPulls, []float64{.01, .1, .5, 1, 5, 15, 60, 300}),
	}
	for _, collector := range []prometheus.Collector{m, m.resolves, m.pulls} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics of ClusterExtensions: %w", err)
		}
	}
	return m, nil
}

// Resolved records the duration of a resolution, and its error, or nil.
func (m *ExtensionMetrics) Resolved(took time.Duration, err error) {
	m.resolves.WithLabelValues(resultOf(err)).Observe(took.Seconds())
}

// Pulled records the duration until an image is on disk, and the error, or nil.
func (m *ExtensionMetrics) Pulled(took time.Duration, err error) {
	m.pulls.WithLabelValues(resultOf(err)).Observe(took.Seconds())
}

func resultOf(err error) string {
	if err != nil {
		return "failure"
	}
	return "success"
}

// Describe implements prometheus.Collector.
func (m *ExtensionMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.info
	out <- m.condition
}

// Collect implements prometheus.Collector.
func (m *ExtensionMetrics) Collect(out chan<- prometheus.Metric) {
	for _, object := range m.all() {
		m.extension(out, object)
	}
}

func (m *ExtensionMetrics) extension(out chan<- prometheus.Metric, object *unstructured.Unstructured) {
	text := func(fields ...string) string {
		found, _, _ := unstructured.NestedString(object.Object, fields...)
		return found
	}
	out <- prometheus.MustNewConstMetric(m.info, prometheus.GaugeValue, 1, object.GetName(),
		text("spec", "source", "sourceType"), text("spec", "source", "catalog", "packageName"), text("status", "install", "bundle", "version"))
	conditions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, one := range list {
		condition, _ := one.(map[string]any)
		kind, _ := condition["type"].(string)
		status, _ := condition["status"].(string)
		reason, _ := condition["reason"].(string)
		out <- prometheus.MustNewConstMetric(m.condition, prometheus.GaugeValue, 1, object.GetName(), kind, status, reason)
	}
}
