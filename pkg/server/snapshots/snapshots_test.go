package snapshots

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

type snapshotDir struct {
	t     *testing.T
	dir   string
	saved atomic.Int32
	full  atomic.Bool
	gauge *gauges
}

func newSnapshotDir(t *testing.T) *snapshotDir {
	s := &snapshotDir{t: t, dir: t.TempDir()}
	s.gauge = newGauges(metrics.NewKubeRegistry(), time.Hour)
	// These files belong to another program.
	for _, name := range []string{"penstock-latest.db", "notes.txt", "penstock-20000101T000000Z.db.part"} {
		s.file(name)
	}
	return s
}

func (s *snapshotDir) file(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *snapshotDir) start(ctx context.Context) {
	taker := &Snapshots{dir: s.dir, interval: time.Hour, keep: 3, metrics: s.gauge, save: func(_ context.Context, path string) error {
		s.saved.Add(1)
		if s.full.Load() {
			return errors.New("no space left on device")
		}
		return os.WriteFile(path, nil, 0o600)
	}}
	go taker.Run(ctx)
	synctest.Wait()
}

// after waits, and checks the number of attempts and the files.
func (s *snapshotDir) after(wait time.Duration, saved int, names ...string) {
	s.t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	if int(s.saved.Load()) != saved {
		s.t.Errorf("%s: %d snapshots were tried, want %d", time.Now().UTC().Format(time.TimeOnly), s.saved.Load(), saved)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	want := append([]string{"penstock-latest.db", "notes.txt", "penstock-20000101T000000Z.db.part"}, names...)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s: files (-want +got):\n%s", time.Now().UTC().Format(time.TimeOnly), diff)
	}
}

func (s *snapshotDir) newest() time.Time {
	s.t.Helper()
	value, err := testutil.GetGaugeMetricValue(s.gauge.newest)
	if err != nil {
		s.t.Fatal(err)
	}
	return time.Unix(int64(value), 0).UTC()
}

// TestSnapshots: snapshots are taken at intervals, and the newest are kept. The clock begins at
// midnight, 2000-01-01.
func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshotDir(t)
		s.start(t.Context())
		s.after(time.Minute, 1, "penstock-20000101T000000Z.db")
		s.after(time.Hour, 2, "penstock-20000101T000000Z.db", "penstock-20000101T010000Z.db")
		s.after(time.Hour, 3, "penstock-20000101T000000Z.db", "penstock-20000101T010000Z.db", "penstock-20000101T020000Z.db")
		s.after(time.Hour, 4, "penstock-20000101T010000Z.db", "penstock-20000101T020000Z.db", "penstock-20000101T030000Z.db")
		if want := time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC); !s.newest().Equal(want) {
			t.Errorf("the newest is of %s, says the metric, want %s", s.newest(), want)
		}
	})
}

// TestSnapshotsGoOn: a new run continues the interval of the previous run. So a process that
// restarts every minute does not replace a day of snapshots with an hour's.
func TestSnapshotsGoOn(t *testing.T) {
	cases := map[string]struct {
		reason string
		newest string
		first  time.Duration
	}{
		"Recent":      {reason: "there is one of half an hour ago", newest: "penstock-19991231T233000Z.db", first: 30 * time.Minute},
		"Old":         {reason: "the last is from yesterday", newest: "penstock-19991231T000000Z.db"},
		"OfTheFuture": {reason: "the clock was wrong", newest: "penstock-20300101T000000Z.db"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSnapshotDir(t)
				s.file(tc.newest)
				s.start(t.Context())
				if tc.first > 0 {
					time.Sleep(tc.first - time.Second)
					synctest.Wait()
					if s.saved.Load() != 0 {
						t.Errorf("%s: %d snapshots too early", tc.reason, s.saved.Load())
					}
					if at, _ := timeOf(tc.newest); !s.newest().Equal(at) {
						t.Errorf("%s: the newest is of %s, says the metric", tc.reason, s.newest())
					}
					time.Sleep(2 * time.Second)
				}
				synctest.Wait()
				if s.saved.Load() != 1 {
					t.Errorf("%s: %d snapshots, want 1", tc.reason, s.saved.Load())
				}
			})
		})
	}
}

// TestSnapshotsFail: a failed snapshot is counted and retried soon, and no older snapshot is
// removed.
func TestSnapshotsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshotDir(t)
		old := []string{"penstock-19991201T000000Z.db", "penstock-19991202T000000Z.db", "penstock-19991203T000000Z.db"}
		for _, name := range old {
			s.file(name)
		}
		s.full.Store(true)
		s.start(t.Context())
		s.after(time.Second, 1, old...)
		s.after(time.Minute, 2, old...)
		failures, err := testutil.GetCounterMetricValue(s.gauge.failures)
		if err != nil || failures != 2 {
			t.Errorf("%v failures were counted, error %v", failures, err)
		}
		s.full.Store(false)
		s.after(time.Minute, 3, old[1], old[2], "penstock-20000101T000200Z.db")
	})
}
