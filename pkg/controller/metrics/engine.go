package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

const (
	// Users choose the names of phases, kinds and field managers, so each label has a limited
	// number of values. Further values become "other".
	maxPhases, maxKinds, maxManagers = 50, 100, 30
	otherValue                       = "other"
	// unknownManager is the manager of changes without an entry in managedFields.
	unknownManager = "unknown"
	// maxFights bounds the remembered repairs, each with the manager that had changed the object.
	maxFights = 1000
)

type engineMetrics struct {
	clock             clock.PassiveClock
	phases            *prometheus.HistogramVec
	repairs, contests *prometheus.CounterVec

	mu sync.Mutex
	// began holds the start of each phase in progress.
	began  map[phase]time.Time
	fights map[manifest.ID]fight

	phaseNames, kinds, managers bounded
}

type phase struct{ layer, name string }

type fight struct {
	manager string
	// contested is true after a repair was delayed.
	contested bool
}

func newEngineMetrics(clock clock.PassiveClock) *engineMetrics {
	return &engineMetrics{
		clock:      clock,
		phases:     catalogue.Histogram(catalogue.Phases, []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}),
		repairs:    catalogue.Counter(catalogue.Repairs),
		contests:   catalogue.Counter(catalogue.Contests),
		began:      map[phase]time.Time{},
		fights:     map[manifest.ID]fight{},
		phaseNames: bounded{most: maxPhases},
		kinds:      bounded{most: maxKinds},
		managers:   bounded{most: maxManagers},
	}
}

// PhaseBegan implements rollout.Meter.
func (s *engineMetrics) PhaseBegan(layer, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.began[phase{layer, name}]; !known {
		s.began[phase{layer, name}] = s.clock.Now()
	}
}

// PhaseComplete implements rollout.Meter.
func (s *engineMetrics) PhaseComplete(layer, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since, known := s.began[phase{layer, name}]; known {
		delete(s.began, phase{layer, name})
		s.phases.WithLabelValues(s.phaseNames.label(name)).Observe(s.clock.Since(since).Seconds())
	}
}

func (s *engineMetrics) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.began, func(p phase, _ time.Time) bool { return p.layer == string(uid) })
}

// Repaired implements rollout.Meter.
func (s *engineMetrics) Repaired(id manifest.ID, manager string) {
	if manager == "" {
		manager = unknownManager
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remember(id, fight{manager: manager})
	s.repairs.WithLabelValues(s.kinds.label(id.GroupKind().String()), s.managers.label(manager)).Inc()
}

// Contested implements rollout.Meter. It counts an object once while it stays contested.
func (s *engineMetrics) Contested(id manifest.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.fights[id]
	if known.contested {
		return
	}
	if known.manager == "" {
		known.manager = unknownManager
	}
	known.contested = true
	s.remember(id, known)
	s.contests.WithLabelValues(s.kinds.label(id.GroupKind().String()), s.managers.label(known.manager)).Inc()
}

func (s *engineMetrics) remember(id manifest.ID, known fight) {
	if _, there := s.fights[id]; !there && len(s.fights) >= maxFights {
		// In the worst case a continuing fight is counted again.
		clear(s.fights)
	}
	s.fights[id] = known
}

// bounded holds the values of a label.
type bounded struct {
	most int
	seen map[string]bool
}

// label returns the value, or otherValue if the label has too many values.
func (b *bounded) label(value string) string {
	if b.seen[value] {
		return value
	}
	if len(b.seen) >= b.most {
		return otherValue
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[value] = true
	return value
}
