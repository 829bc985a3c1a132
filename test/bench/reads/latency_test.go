package reads

import (
	"context"
	"fmt"
	"strconv"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// asked is how often a read is repeated for its 99th percentile, of which there is none
// with fewer.
const asked = 100

// latencies measures single requests, one at a time: how long people wait, and how much
// of that is the way through kube-apiserver.
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

func digits(millis float64) string { return strconv.FormatFloat(millis, 'f', 2, 64) }
