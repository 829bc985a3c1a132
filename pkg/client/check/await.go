package check

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

const interval = time.Second

// Await repeats Run until no check fails, for at most timeout, and returns the last results. It
// calls found when the first failed result of a run differs from that of the previous run.
func Await(ctx context.Context, o Options, timeout time.Duration, clock clock.Clock, found func(Result)) ([]Result, error) {
	return await(ctx, timeout, clock, found, func() ([]Result, error) {
		o.Now = clock.Now()
		return Run(ctx, o)
	})
}

func await(ctx context.Context, timeout time.Duration, clock clock.Clock, found func(Result), run func() ([]Result, error)) ([]Result, error) {
	end := clock.Now().Add(timeout)
	var before Result
	for {
		results, err := run()
		if err != nil || !Failing(results) || !clock.Now().Before(end) {
			return results, err
		}
		for _, result := range results {
			if result.State != Failed {
				continue
			}
			if result != before {
				found(result)
			}
			before = result
			break
		}
		select {
		case <-ctx.Done():
			return results, ctx.Err()
		case <-clock.After(interval):
		}
	}
}
