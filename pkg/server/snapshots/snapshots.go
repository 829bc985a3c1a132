// Package snapshots saves copies of the embedded store at intervals, and removes old copies.
package snapshots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

const (
	// prefix and suffix enclose the time in a snapshot's name. Names
	// sort by time.
	prefix     = "penstock-"
	timeLayout = "20060102T150405Z"
	suffix     = ".db"

	// DefaultInterval is the default interval of snapshots, and MinInterval the shortest.
	// DefaultKeep is the default number of kept snapshots.
	DefaultInterval = time.Hour
	MinInterval     = time.Minute
	DefaultKeep     = 24
	// retry is the pause after a failure, unless the interval is shorter.
	retry = time.Minute
	// timeout bounds one snapshot. A disk that takes longer is unsuitable.
	timeout = 10 * time.Minute
)

// Snapshots writes copies of the embedded store to a directory at intervals, and keeps the newest.
// It ignores files with other names.
type Snapshots struct {
	dir      string
	interval time.Duration
	keep     int
	// save writes the present store to a file, which appears only when it is complete.
	save    func(ctx context.Context, path string) error
	metrics *gauges
}

// Run takes snapshots until ctx ends. The first is due an interval after the newest existing
// snapshot.
func (s *Snapshots) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("snapshots")
	wait, err := s.due(time.Now())
	if err != nil {
		log.Error(err, "The snapshots that are there could not be read", "dir", s.dir)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now := time.Now()
		path, err := s.take(ctx, now)
		wait = s.interval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(wait, retry)
			s.metrics.failed()
			log.Error(err, "There is no new snapshot of the store; trying again", "after", wait)
		default:
			s.metrics.taken(now)
			log.Info("Took a snapshot of the store", "file", path)
		}
	}
}

func (s *Snapshots) due(now time.Time) (time.Duration, error) {
	names, err := s.list()
	if err != nil || len(names) == 0 {
		return 0, err
	}
	newest, _ := timeOf(names[len(names)-1])
	if newest.After(now) {
		return 0, nil // the clock was wrong then, or is now
	}
	s.metrics.taken(newest)
	return max(0, newest.Add(s.interval).Sub(now)), nil
}

func (s *Snapshots) take(ctx context.Context, now time.Time) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	path := filepath.Join(s.dir, prefix+now.UTC().Format(timeLayout)+suffix)
	if err := s.save(ctx, path); err != nil {
		return "", err
	}
	names, err := s.list()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, name := range names[:max(0, len(names)-s.keep)] {
		errs = append(errs, os.Remove(filepath.Join(s.dir, name)))
	}
	return path, errors.Join(errs...)
}

func (s *Snapshots) list() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if _, ok := timeOf(entry.Name()); ok && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// timeOf returns the time of a snapshot from its name, or false if the file is not a snapshot.
func timeOf(name string) (time.Time, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return time.Time{}, false
	}
	if text, ok = strings.CutSuffix(text, suffix); !ok {
		return time.Time{}, false
	}
	taken, err := time.Parse(timeLayout, text)
	return taken, err == nil
}

// gauges expose the age of the newest snapshot.
type gauges struct {
	newest, interval metrics.GaugeMetric
	failures         metrics.CounterMetric
}

// newGauges registers the metrics. Call it once per registry.
func newGauges(registry metrics.KubeRegistry, interval time.Duration) *gauges {
	newest := metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "penstock_snapshot_timestamp_seconds",
		Help:           "Unix time of the newest snapshot of the store; 0 when there is none yet.",
		StabilityLevel: metrics.ALPHA,
	})
	every := metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "penstock_snapshot_interval_seconds",
		Help:           "How often a snapshot of the store is to be taken.",
		StabilityLevel: metrics.ALPHA,
	})
	failures := metrics.NewCounter(&metrics.CounterOpts{
		Name:           "penstock_snapshot_failures_total",
		Help:           "Snapshots of the store that could not be taken, or after which old ones could not be removed.",
		StabilityLevel: metrics.ALPHA,
	})
	registry.MustRegister(newest, every, failures)
	newest.Set(0)
	every.Set(interval.Seconds())
	return &gauges{newest: newest, interval: every, failures: failures}
}

func (m *gauges) taken(at time.Time) { m.newest.Set(float64(at.Unix())) }

func (m *gauges) failed() { m.failures.Inc() }

// Options holds the settings of Snapshots.
type Options struct {
	// Dir is created if absent. It gets a snapshot every Interval, and the newest Keep stay.
	Dir      string
	Interval time.Duration
	Keep     int
	// Save writes a consistent copy of the store to a file, which appears only when it is complete.
	Save func(ctx context.Context, path string) error
	// Metrics registers the metrics. Use a registry only once.
	Metrics metrics.KubeRegistry
}

// New returns a Snapshots, and creates its directory.
func New(o Options) (*Snapshots, error) {
	// Snapshots contain the Secrets of all revisions.
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory for snapshots: %w", err)
	}
	return &Snapshots{dir: o.Dir, interval: o.Interval, keep: o.Keep, save: o.Save, metrics: newGauges(o.Metrics, o.Interval)}, nil
}
