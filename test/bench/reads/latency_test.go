package reads

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// asked is the number of repetitions of a read, as needed for a 99th percentile.
const asked = 100

// latencies measures single requests, one at a time: the time that users wait, and the share of
// kube-apiserver.
func (b *bench) latencies() {
	b.t.Helper()
	table := b.report.Table(fmt.Sprintf("How long a request takes, %d of each, %d revisions of %d objects", asked, b.settings.revisions, b.operator.Objects),
		"read", "p50 ms", "p99 ms", "p50 ms on our own port", "p99 ms on our own port", "the way through kube-apiserver")
	for _, c := range []struct{ name, path, accept string }{
		{"LIST, table", revisions, asTable},
		{"GET", revisions + "/operator-0000-3", asJSON},
		{"diff, 13 objects", revisions + "/operator-0000-3/diff", asJSON},
		{"diff, 46 objects", revisions + "/sized-46-2/diff", asJSON},
	} {
		b.say("measuring how long %s takes", c.name)
		result, err := measure.Run(b.t.Context(), measure.Case{Name: c.name, Rounds: asked, Subjects: subjects(
			[]target{{aggregated, b.host, c.path}, {direct, b.direct, c.path}},
			func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, c.accept) })})
		if err != nil {
			b.t.Fatal(err)
		}
		through, own := result.Of(aggregated), result.Of(direct)
		table.Row(c.name, digits(through.Median), digits(through.P99), digits(own.Median), digits(own.P99),
			fmt.Sprintf("%.0f%%", 100*(1-result.Ratio(direct, aggregated).Median)))
	}
}

// processors measures the processor time of one LIST in kube-apiserver and in Penstock. A custom
// resource needs no aggregator. For Penstock's type, kube-apiserver's time is the cost of the
// aggregator.
func (b *bench) processors() {
	b.t.Helper()
	const times = 20
	apiserver, err := b.cluster.Plane().Pid("kube-apiserver")
	if err != nil {
		b.t.Fatal(err)
	}
	table := b.report.Table(fmt.Sprintf("Processor time of one LIST as a table, in the mean of %d, %d revisions of %d objects", times, b.settings.revisions, b.operator.Objects),
		"of", "kube-apiserver, ms", "penstock, ms")
	for _, t := range b.targets(true) {
		b.say("measuring the processor time of a LIST of %s", t.name)
		before := b.cpuOf(apiserver, b.server.Pid())
		for range times {
			if _, err := t.client.read(b.t.Context(), t.path, asTable); err != nil {
				b.t.Fatal(err)
			}
		}
		after := b.cpuOf(apiserver, b.server.Pid())
		each := func(i int) string { return digits((after[i] - before[i]).Seconds() * 1000 / times) }
		table.Row(t.name, each(0), each(1))
	}
}

func (b *bench) cpuOf(pids ...int) []time.Duration {
	b.t.Helper()
	var all []time.Duration
	for _, pid := range pids {
		used, err := measure.CPUOf(pid)
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, used)
	}
	return all
}

func digits(millis float64) string { return strconv.FormatFloat(millis, 'f', 2, 64) }
