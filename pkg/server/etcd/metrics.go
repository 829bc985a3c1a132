package etcd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricsTimeout bounds how long a scrape waits for an etcd that may hang.
const metricsTimeout = 2 * time.Second

// Measures reports whether a metric is about etcd, and not about its process or Go.
func Measures(name string) bool {
	return strings.HasPrefix(name, "etcd_") || strings.HasPrefix(name, "grpc_server_")
}

var _ prometheus.Gatherer = &Process{}

// Gather implements prometheus.Gatherer. It returns etcd's own metrics, and no metrics while etcd
// does not run.
func (p *Process) Gather() ([]*dto.MetricFamily, error) {
	if _, reason := p.Down(); reason != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(p.endpoint, "unix://"))
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of etcd: %w", err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of etcd: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of etcd: %w", err)
	}
	var families []*dto.MetricFamily
	for name, family := range found {
		// etcd's metrics of its process and of Go would look like the server's.
		if Measures(name) {
			families = append(families, family)
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, nil
}
