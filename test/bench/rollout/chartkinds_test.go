package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// nameKinds is Penstock with a ChartKind. nameOperator is a loop like helm-operator.
const (
	nameKinds    = "penstock, ChartKind"
	nameOperator = "operator loop, Helm's SDK"
)

const (
	// shareOfRequests and shareOfProcessor are Penstock's limits in percent of the operator loop's
	// use: 20 times fewer requests, 10 times less processor time.
	shareOfRequests, shareOfProcessor = 5, 10
	// flapEvery is the minimum time between two changes of workloads.
	flapEvery = 250 * time.Millisecond
)

// TestChartKinds measures custom resources that are installed with a chart, while their workloads
// change. It compares Penstock with an operator that runs a dry-run upgrade for each change.
func TestChartKinds(t *testing.T) {
	if os.Getenv("BENCH") != "chartkinds" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=chartkinds`")
	}
	resources, flaps := 20, 60
	switch os.Getenv("FULL") {
	case "0":
		resources, flaps = 3, 6
	case "1":
		resources, flaps = 100, 300
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), peer: buildPeer(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	b.flapping(t, resources, flaps)
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// flapping installs Centrals with each system, and makes workloads unavailable and available again,
// one after the other.
func (b *bench) flapping(t *testing.T, resources, flaps int) {
	chart := steadyChart(t)
	starters := map[string]func(*casePlane) *kinds{
		nameKinds:    func(w *casePlane) *kinds { return startKinds(w, b.program, chart) },
		nameOperator: func(w *casePlane) *kinds { return startOperator(w, b.peer, chart) },
	}
	names := []string{nameKinds, nameOperator}
	installs, flapped, rests := map[string]sample{}, map[string]sample{}, map[string]sample{}
	delays := map[string]measure.Spread{}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			b.say("%d Centrals: %s", resources, name)
			w := newCasePlane(t, 0)
			k := starters[name](w)
			<-time.After(settling)
			installs[name] = w.step(k, func(ctx context.Context) (time.Duration, error) { return k.install(ctx, resources) })
			<-time.After(afterwards)
			mark := w.cluster.Audit().Mark()
			flapped[name] = w.step(k, func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				took, err := k.flap(ctx, resources, flaps)
				delays[name] = measure.SpreadOf(took)
				return time.Since(began), err
			})
			b.sayRequests(name, w.cluster.Audit().Since(mark, k.sends, plane.Not(plane.ByVerb("watch"))))
			<-time.After(afterwards)
			mark = w.cluster.Audit().Mark()
			rests[name] = w.step(k, func(ctx context.Context) (time.Duration, error) {
				<-time.After(atRest)
				return atRest, ctx.Err()
			})
			b.sayRequests(name+" at rest", w.cluster.Audit().Since(mark, k.sends, plane.Not(plane.ByVerb("watch"))))
		})
	}
	if t.Failed() {
		t.FailNow() // a comparison needs both halves
	}
	transitions := float64(2 * flaps)
	title := fmt.Sprintf("%d Centrals of %d objects, %d changes of whether a workload is available", resources, objectsOf(t, b.program, chart), 2*flaps)
	table := b.report.Table(title, "system", "requests", "writes", "dry-runs", "reads", "questions", "requests a change", "processor, s", "ms a change", "of kube-apiserver, s",
		"column after, ms", "p10 to p90", "peak memory, MB", "at rest in 10 s", "installed after, s", "with requests", "with processor, s")
	for _, name := range names {
		did, made, delay := flapped[name], installs[name], delays[name]
		table.Row(name, fmt.Sprint(did.requests()), fmt.Sprint(did.writes), fmt.Sprint(did.dryRuns), fmt.Sprint(did.reads), fmt.Sprint(did.asks),
			fmt.Sprintf("%.1f", float64(did.requests())/transitions), fmt.Sprintf("%.2f", did.clientCPU/1000), fmt.Sprintf("%.1f", did.clientCPU/transitions), fmt.Sprintf("%.2f", did.serverCPU/1000),
			fmt.Sprintf("%.0f", delay.Median), fmt.Sprintf("%.0f to %.0f", delay.Low, delay.High), fmt.Sprintf("%.0f", did.peak/1e6), fmt.Sprint(rests[name].requests()),
			fmt.Sprintf("%.1f", made.millis/1000), fmt.Sprint(made.requests()), fmt.Sprintf("%.1f", made.clientCPU/1000))
	}
	ours, theirs := flapped[nameKinds], flapped[nameOperator]
	b.report.AtMost("requests beside the operator loop's", shareOfRequests, 100*float64(ours.requests())/float64(theirs.requests()), "%")
	b.report.AtMost("processor time beside the operator loop's", shareOfProcessor, 100*ours.clientCPU/theirs.clientCPU, "%")
	b.report.AtMost(fmt.Sprintf("writes for %d changes", 2*flaps), transitions, float64(ours.writes), "writes")
	b.report.AtMost("requests at rest in "+atRest.String(), 0, float64(rests[nameKinds].requests()), "requests")
	b.say("%.1f times fewer requests, %.1f times less processor time", float64(theirs.requests())/float64(ours.requests()), theirs.clientCPU/ours.clientCPU)
}

// flap makes the Deployment of a random Central unavailable and available again, flaps times. The
// order is the same for every system. The next change comes when the column shows the previous one.
// flap returns these delays, in milliseconds.
func (k *kinds) flap(ctx context.Context, resources, flaps int) ([]float64, error) {
	random := rand.New(rand.NewPCG(1, 1))
	tick := time.NewTicker(flapEvery)
	defer tick.Stop()
	var delays []float64
	for range flaps {
		namespace := tenant(random.IntN(resources))
		for _, up := range []bool{false, true} {
			<-tick.C
			began := time.Now()
			if err := k.setAvailable(ctx, namespace, up); err != nil {
				return nil, err
			}
			if err := k.until(ctx, fmt.Sprintf("Central of %s to be available: %t", namespace, up), func(ready map[string]bool) bool { return ready[namespace] == up }); err != nil {
				return nil, err
			}
			delays = append(delays, millis(time.Since(began)))
		}
	}
	return delays, nil
}

func tenant(i int) string { return fmt.Sprintf("tenant-%03d", i) }
