package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

type stepping struct{ *testingclock.FakeClock }

func (s stepping) After(d time.Duration) <-chan time.Time {
	after := s.FakeClock.After(d)
	s.Step(d)
	return after
}

func TestAwait(t *testing.T) {
	fine, unknown := Result{"pods", OK, "", ""}, Result{"pods", Unknown, "", ""}
	absent, broken := Result{"penstock", Failed, notThere, "x"}, Result{"store", Failed, "500", "y"}
	wrong := errors.New("the kubeconfig is wrong")
	for reason, tc := range map[string]struct {
		timeout time.Duration
		runs    [][]Result
		err     error
		// ran is the number of checks. found lists the reported results.
		ran   int
		found []Result
	}{
		"fine at once":      {time.Minute, [][]Result{{fine}}, nil, 1, nil},
		"without a timeout": {0, [][]Result{{absent}, {fine}}, nil, 1, nil},
		"becomes fine":      {time.Minute, [][]Result{{absent}, {absent}, {fine, broken}, {fine, unknown}}, nil, 4, []Result{absent, broken}},
		"never fine":        {2 * time.Second, [][]Result{{absent}, {absent}, {broken}, {fine}}, nil, 3, []Result{absent}},
		"an error":          {time.Minute, [][]Result{{absent}, nil, {fine}}, wrong, 2, []Result{absent}},
	} {
		ran, found := 0, []Result(nil)
		results, err := await(t.Context(), tc.timeout, stepping{testingclock.NewFakeClock(time.Unix(0, 0))}, func(r Result) { found = append(found, r) },
			func() ([]Result, error) {
				ran++
				if tc.runs[ran-1] == nil {
					return nil, wrong
				}
				return tc.runs[ran-1], nil
			})
		if !errors.Is(err, tc.err) || ran != tc.ran || !cmp.Equal(results, tc.runs[ran-1]) || !cmp.Equal(found, tc.found) {
			t.Errorf("%s: it checked %d times, want %d, found %v, want %v, and returned %v, %v", reason, ran, tc.ran, found, tc.found, results, err)
		}
	}
}

// TestAwaitEnds: Ctrl-C ends the wait. The results are returned.
func TestAwaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failed := []Result{{"store", Failed, "500", "x"}}
	results, err := await(ctx, time.Hour, testingclock.NewFakeClock(time.Unix(0, 0)), func(Result) { cancel() }, func() ([]Result, error) { return failed, nil })
	if !errors.Is(err, context.Canceled) || !cmp.Equal(results, failed) {
		t.Errorf("%v, %v", results, err)
	}
}
