package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// results are the samples of a case, by step and system, one per repeat.
type results struct {
	title string
	steps []string
	names []string
	of    map[string]map[string][]sample
}

func (b *bench) measure(t *testing.T, bundle bundle, roundTrip time.Duration, systems []string) *results {
	t.Helper()
	r := &results{title: fmt.Sprintf("%s (%s), %s round trip", bundle.title, bundle.size(), roundTrip), names: systems, of: map[string]map[string][]sample{}}
	for _, step := range steps(bundle, len(bundle.first) > 1) {
		r.steps = append(r.steps, step.name)
		r.of[step.name] = map[string][]sample{}
	}
	for repeat := range b.repeats {
		for i := range systems {
			// Each round begins with another system.
			name := systems[(repeat+i)%len(systems)]
			b.say("%s: %s, %d of %d", r.title, name, repeat+1, b.repeats)
			t.Run(fmt.Sprintf("%s/%d", name, repeat), func(t *testing.T) {
				for step, sample := range b.run(t, bundle, roundTrip, b.starters()[name]) {
					r.of[step][name] = append(r.of[step][name], sample)
				}
			})
		}
	}
	if t.Failed() {
		t.FailNow() // a comparison needs both halves
	}
	r.print(b.report)
	return r
}

func (r *results) print(report *measure.Report) {
	table := report.Table(r.title, "step", "system", "ms", "least to most", "waiting ms", "requests", "writes", "dry-runs", "reads", "rights", "client CPU ms", "kube-apiserver CPU ms", "client peak MB")
	for _, step := range r.steps {
		for _, name := range r.names {
			samples := r.of[step][name]
			wall := r.spread(step, name, func(s sample) float64 { return s.millis })
			number := func(of func(sample) float64) string {
				return fmt.Sprintf("%.0f", r.spread(step, name, of).Median)
			}
			least, most := wall.Median, wall.Median
			for _, s := range samples {
				least, most = min(least, s.millis), max(most, s.millis)
			}
			table.Row(step, name, fmt.Sprintf("%.0f", wall.Median), fmt.Sprintf("%.0f to %.0f", least, most),
				number(func(s sample) float64 { return s.waited }),
				number(func(s sample) float64 { return float64(s.requests()) }),
				number(func(s sample) float64 { return float64(s.writes) }),
				number(func(s sample) float64 { return float64(s.dryRuns) }),
				number(func(s sample) float64 { return float64(s.reads) }),
				number(func(s sample) float64 { return float64(s.asks) }),
				number(func(s sample) float64 { return s.clientCPU }),
				number(func(s sample) float64 { return s.serverCPU }),
				number(func(s sample) float64 { return s.peak / 1e6 }))
		}
	}
}

func (r *results) spread(step, name string, of func(sample) float64) measure.Spread {
	var values []float64
	for _, s := range r.of[step][name] {
		values = append(values, of(s))
	}
	return measure.SpreadOf(values)
}

// compared returns the times of a step for verdicts, without waiting times. Only Penstock waits
// until its objects are served and available.
func (r *results) compared(step string) *measure.Result {
	result := &measure.Result{Case: measure.Case{Name: step}, Millis: map[string][]float64{}}
	for name, samples := range r.of[step] {
		for _, s := range samples {
			result.Millis[name] = append(result.Millis[name], s.millis-s.waited)
		}
	}
	return result
}

func (b *bench) judgeOne(r *results, roundTrip time.Duration) {
	at := fmt.Sprintf(", %s round trip", roundTrip)
	install := r.compared("install")
	b.report.AtLeast("install, one phase, no preflight, beside the parallel loop"+at, 0.85, install, nameBare, nameParallel)
	b.report.AtLeast("install beside the parallel loop"+at, 0.5, install, nameOurs, nameParallel)
	b.ahead(r, at, roundTrip)
	b.report.AtMost("requests to the cluster when nothing changes"+at, 0, b.engineRequests(r), "requests")
}

// engineRequests returns the requests of Penstock's engine when the same content is applied again:
// all except the author's one request.
func (b *bench) engineRequests(r *results) float64 {
	s := r.spread("the same again", nameOurs, func(s sample) float64 { return float64(s.requests() - s.asks) })
	return s.Median - 1
}

func (b *bench) judgeMany(r *results, n int, roundTrip time.Duration) {
	at := fmt.Sprintf(", %d extensions, %s round trip", n, roundTrip)
	b.report.AtLeast("install beside the parallel loop"+at, 0.4, r.compared("install"), nameOurs, nameParallel)
	b.ahead(r, at, roundTrip)
}

// ahead adds verdicts for each step that the peers have, too. kubectl does no dry-run before it
// writes, so it is a peer only for a remote cluster.
func (b *bench) ahead(r *results, at string, roundTrip time.Duration) {
	peers := []string{nameHelm}
	if roundTrip > 0 {
		peers = append(peers, nameKubectl)
	}
	for _, step := range r.steps {
		for _, peer := range peers {
			if len(r.of[step][peer]) > 0 {
				b.report.AtLeast(step+" beside "+peer+at, 1, r.compared(step), nameOurs, peer)
			}
		}
	}
}
