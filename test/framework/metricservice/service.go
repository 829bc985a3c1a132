// Package metricservice answers queries as the HTTP API of Prometheus does.
package metricservice

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Service answers every query with the same samples. It is safe for concurrent use.
type Service struct {
	mu      sync.Mutex
	samples []float64
	queries []string
}

// Answer sets the samples for all later queries.
func (s *Service) Answer(samples ...float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = samples
}

// Queries returns the answered queries, the oldest first.
func (s *Service) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.queries...)
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/query" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, r.PostFormValue("query"))
	_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[`)
	for i, sample := range s.samples {
		if i > 0 {
			_, _ = fmt.Fprint(w, ",")
		}
		_, _ = fmt.Fprintf(w, `{"metric":{"n":"%d"},"value":[%.3f,%q]}`, i, float64(time.Now().UnixMilli())/1000, strconv.FormatFloat(sample, 'g', -1, 64))
	}
	_, _ = fmt.Fprint(w, `]}}`)
}
