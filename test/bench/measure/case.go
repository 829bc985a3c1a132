package measure

import (
	"context"
	"fmt"
	"time"
)

// maxPause limits the wait for the garbage collection of the previous subject.
const maxPause = 200 * time.Millisecond

// Subject is one of the compared implementations of a case.
type Subject struct {
	Name string
	// Do runs the subject once, and returns the size of the answer in bytes.
	Do func(context.Context) (bytes int64, err error)
}

// Case is an action that several subjects run.
type Case struct {
	Name     string
	Subjects []Subject
	// Rounds is the number of turns of each subject.
	Rounds int
	// Burst is the number of repetitions in a turn; 0 means one. Work of less than a few
	// milliseconds needs several: the sample is their median.
	Burst int
}

// Result has the durations of a case, in milliseconds, by subject.
type Result struct {
	Case Case
	// Millis has one sample per round.
	Millis map[string][]float64
	// Bytes is the size of the last answer.
	Bytes map[string]int64
}

// Run runs every subject once per round. The first round is a warm-up and does not count. Each
// round begins with another subject, so that no subject always runs after the same one.
func Run(ctx context.Context, c Case) (*Result, error) {
	result := &Result{Case: c, Millis: map[string][]float64{}, Bytes: map[string]int64{}}
	for round := range c.Rounds + 1 {
		for i := range c.Subjects {
			subject := c.Subjects[(round+i)%len(c.Subjects)]
			took, bytes, err := turn(ctx, subject, max(1, c.Burst))
			if err != nil {
				return nil, fmt.Errorf("measuring %s of %s: %w", c.Name, subject.Name, err)
			}
			if round > 0 {
				result.Millis[subject.Name] = append(result.Millis[subject.Name], took)
				result.Bytes[subject.Name] = bytes
			}
		}
	}
	return result, nil
}

// turn returns the median of a burst in milliseconds. It ends with a pause as long as the burst. In
// the pause a server collects its garbage, so that the collection does not count for the next case.
func turn(ctx context.Context, subject Subject, burst int) (millis float64, bytes int64, err error) {
	var samples []float64
	began := time.Now()
	for range burst {
		start := time.Now()
		if bytes, err = subject.Do(ctx); err != nil {
			return 0, 0, err
		}
		samples = append(samples, float64(time.Since(start))/float64(time.Millisecond))
	}
	pause := time.NewTimer(min(time.Since(began), maxPause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	return SpreadOf(samples).Median, bytes, nil
}

// Of returns the spread of a subject, in milliseconds.
func (r *Result) Of(subject string) Spread { return SpreadOf(r.Millis[subject]) }

// Ratio returns the ratio of two subjects' times, round by round, so that a busy machine affects
// both.
func (r *Result) Ratio(subject, than string) Spread {
	a, b := r.Millis[subject], r.Millis[than]
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return SpreadOf(ratios)
}
