package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// waiting returns the time that a system spent only waiting for the cluster, until definitions are
// served and workloads are available. It starts with the answer to the last request of the system.
// It ends with the last status change before the system's next request. The time until the system
// notices that change is not included.
func waiting(requests plane.Requests, sends plane.Filter, began, ended time.Time) time.Duration {
	rollsOut := func(r plane.Request) bool {
		return sends(r) && r.Verb != "watch" && r.Resource != "leases" && r.Resource != "events"
	}
	own := requests.Where(rollsOut)
	slices.SortFunc(own, func(a, b plane.Request) int { return a.Received.Compare(b.Received) })
	changes := requests.Where(plane.Not(sends), func(r plane.Request) bool { return r.Subresource == "status" })
	var total time.Duration
	gap := func(from, to time.Time) {
		end := from
		for _, change := range changes {
			if change.Ended.After(end) && change.Ended.Before(to) {
				end = change.Ended
			}
		}
		total += end.Sub(from)
	}
	busy := began
	for _, request := range own {
		// Before its first request the system cannot have waited.
		if request.Received.After(busy) && !busy.Equal(began) {
			gap(busy, request.Received)
		}
		if request.Ended.After(busy) {
			busy = request.Ended
		}
	}
	if ended.After(busy) {
		gap(busy, ended)
	}
	return total
}

// TestWaiting: the subtracted time contains neither work nor the time to notice.
func TestWaiting(t *testing.T) {
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	write := func(from, to int) plane.Request {
		return plane.Request{Verb: "patch", UserAgent: "ours", Received: at(from), Ended: at(to)}
	}
	status := func(from, to int) plane.Request {
		return plane.Request{Verb: "update", Subresource: "status", UserAgent: "controller", Received: at(from), Ended: at(to)}
	}
	event := write(45, 47)
	event.Resource = "events"
	cases := map[string]struct {
		reason   string
		requests plane.Requests
		want     int
	}{
		"Gate":     {"from the answer to the write until the last status, not until the next write", plane.Requests{write(10, 20), status(30, 40), status(50, 60), write(90, 99)}, 40},
		"Overlap":  {"while something of its own is under way it does not wait", plane.Requests{write(10, 20), write(15, 70), status(30, 40), write(80, 90)}, 0},
		"Last":     {"what is waited for behind the last write", plane.Requests{write(10, 20), status(30, 40)}, 20},
		"None":     {"a pause in which nothing changes is its own", plane.Requests{write(10, 20), write(50, 60)}, 0},
		"Before":   {"nothing was written yet", plane.Requests{status(1, 5), write(10, 20)}, 0},
		"Too late": {"a status that changes when all is done was not waited for", plane.Requests{write(10, 20), status(110, 120)}, 0},
		"Events":   {"events are told beside", plane.Requests{write(10, 20), event, status(50, 60), write(80, 90)}, 40},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waiting(tc.requests, plane.ByAgent("ours"), began, at(100))
			if want := time.Duration(tc.want) * time.Millisecond; got != want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, want)
			}
		})
	}
}
