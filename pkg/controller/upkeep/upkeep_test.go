package upkeep

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
)

// diary records the actions of a loop with their times.
type diary struct {
	start   time.Time
	entries []string
	// fail makes the next action of a kind fail once.
	fail map[string]error
	// putOff is the number of packs that the next collection puts off. Each further collection puts
	// off ten less.
	putOff int
	report fsck.Report
}

func (d *diary) note(what string) error {
	d.entries = append(d.entries, fmt.Sprintf("%s %s", time.Since(d.start), what))
	err := d.fail[what]
	delete(d.fail, what)
	return err
}

func (d *diary) Begin(context.Context) error { return d.note("begin") }
func (d *diary) Collect(context.Context) (gc.Result, error) {
	result := gc.Result{Packs: 1, PutOff: d.putOff}
	d.putOff = max(0, d.putOff-10)
	return result, d.note("collect")
}
func (*diary) Collected(int, int)             {}
func (*diary) Checked(fsck.Report, time.Time) {}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		fail    map[string]error
		report  fsck.Report
		deleted []time.Duration
		raised  bool
		putOff  int
		until   time.Duration
		want    []string
	}{
		"nothing happens": {
			reason: "once at the beginning, then one check a day and nothing else",
			until:  49 * time.Hour,
			want:   []string{"10s begin", "10s collect", "10m0s check", "24h10m0s check", "48h10m0s check"},
		},
		"deletions": {
			reason:  "a collection follows when they have ended",
			deleted: []time.Duration{5 * time.Minute, 5*time.Minute + 4*time.Second},
			until:   9 * time.Minute,
			want:    []string{"10s begin", "10s collect", "5m14s collect"},
		},
		"deletions without end": {
			reason:  "they put a collection off for a minute at most",
			deleted: every(7*time.Second, 5*time.Minute, 7*time.Minute),
			until:   8 * time.Minute,
			want:    []string{"10s begin", "10s collect", "6m0s collect", "7m3s collect"},
		},
		"beside an earlier Penstock": {
			reason:  "nothing is collected while replicas go on that know of no collector",
			raised:  true,
			deleted: []time.Duration{time.Second, 20 * time.Minute},
			until:   21 * time.Minute,
			want:    []string{"10m0s check", "10m0s begin", "10m0s collect", "20m10s collect"},
		},
		"failures": {
			reason: "what failed is tried again, and nothing hammers",
			fail:   map[string]error{"begin": errors.New("no"), "collect": errors.New("no"), "check": errors.New("no")},
			until:  20 * time.Minute,
			want:   []string{"10s begin", "5m10s begin", "5m10s collect", "10m0s check", "10m10s collect", "15m0s check"},
		},
		"a full etcd": {
			reason: "it may have room for deletions in a moment",
			fail:   map[string]error{"begin": rpctypes.ErrNoSpace, "collect": fmt.Errorf("x: %w", rpctypes.ErrNoSpace)},
			until:  9 * time.Minute,
			want:   []string{"10s begin", "30s begin", "30s collect", "50s collect"},
		},
		"superseded": {
			reason: "who was superseded begins anew",
			fail:   map[string]error{"collect": fmt.Errorf("x: %w", gc.ErrSuperseded)},
			until:  9 * time.Minute,
			want:   []string{"10s begin", "10s collect", "5m10s begin", "5m10s collect"},
		},
		"much to collect": {
			reason: "a collection writes so much, and the next one goes on",
			putOff: 15,
			until:  9 * time.Minute,
			want:   []string{"10s begin", "10s collect", "30s collect", "50s collect"},
		},
		"left over": {
			reason: "what a check finds left over is collected",
			report: fsck.Report{Problems: []fsck.Problem{{Kind: fsck.LeftOver}}},
			until:  20 * time.Minute,
			want:   []string{"10s begin", "10s collect", "10m0s check", "10m0s collect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{start: time.Now(), fail: tc.fail, report: tc.report, putOff: tc.putOff}
				loop := New(Options{
					Collector: func() Collector { return d }, Metrics: d, Clock: clock.RealClock{}, Raised: tc.raised,
					Check: func(context.Context, func(context.Context, int) error) (fsck.Report, error) {
						return d.report, d.note("check")
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), tc.until)
				defer cancel()
				for _, at := range tc.deleted {
					time.AfterFunc(at, loop.Deleted)
				}
				if err := loop.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, d.entries); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func every(step, from, to time.Duration) []time.Duration {
	var times []time.Duration
	for at := from; at <= to; at += step {
		times = append(times, at)
	}
	return times
}

// TestPace: a check reads 2 MiB per second.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop, start := New(Options{Clock: clock.RealClock{}}), time.Now()
		for range 10 {
			if err := loop.pace(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("10 MiB took %s, want 5s", took)
		}
	})
}
