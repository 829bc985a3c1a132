package reads

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/bench/operator"
)

// liveReaders is a group whose members may do everything. Each member sends one request, because
// Penstock caches an answer briefly per user.
const liveReaders = "bench-live-readers"

// live measures the cost of comparing a revision with the cluster: the time, and the requests to
// kube-apiserver.
func (b *bench) live() {
	b.t.Helper()
	o := operator.Operator{Name: "live", Objects: operator.MeanObjects, Bytes: operator.MeanBytes}
	if err := b.create(b.t.Context(), o, 1); err != nil {
		b.t.Fatal(err)
	}
	b.cluster.MustKubectl("create", "namespace", o.Name+"-system")
	b.cluster.MustKubectl("create", "clusterrolebinding", liveReaders, "--clusterrole=cluster-admin", "--group="+liveReaders)
	asked := 0
	ask := func(ctx context.Context) (int64, error) {
		asked++
		return b.host.readAs(ctx, "/apis/olm.operatorframework.io/v1alpha1/revisiondiffs/live-1..live", fmt.Sprintf("reader-%d", asked), liveReaders)
	}
	title := fmt.Sprintf("Diff of a revision and the cluster, %d objects, none of them there", o.Objects)
	b.run(title, aggregated, measure.Case{Name: "live", Rounds: b.settings.rounds, Subjects: []measure.Subject{{Name: aggregated, Do: ask}}})

	before := b.requests()
	if _, err := ask(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	after := b.requests()
	table := b.report.Table(fmt.Sprintf("Requests to kube-apiserver for one such diff, %d objects", o.Objects), "what", "requests")
	for _, kind := range requestKinds() {
		table.Row(kind.what, strconv.Itoa(after[kind.what]-before[kind.what]))
	}
}

// requestKind is a kind of request for a live diff, by the labels of kube-apiserver's metrics.
type requestKind struct {
	what   string
	labels []string
}

// requestKinds returns disjoint kinds. No other client sends them meanwhile, because no revision is
// rolled out.
func requestKinds() []requestKind {
	return []requestKind{
		{"dry-run, server-side apply", []string{`dry_run="All"`, `verb="APPLY"`}},
		{"dry-run, anything else", []string{`dry_run="All"`, `verb="`}},
		{"SubjectAccessReview", []string{`resource="subjectaccessreviews"`, `verb="POST"`}},
		{"token of the reader", []string{`subresource="token"`, `verb="POST"`}},
	}
}

func (b *bench) requests() map[string]int {
	b.t.Helper()
	response, err := b.host.do(b.t.Context(), http.MethodGet, "/metrics", "text/plain", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(response.Body)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		_, text, _ := strings.Cut(line, "} ")
		count, err := strconv.ParseFloat(text, 64)
		if err != nil {
			b.t.Fatalf("counting requests in %q: %v", line, err)
		}
		for _, kind := range requestKinds() {
			if hasAll(line, kind.labels) {
				counts[kind.what] += int(count)
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		b.t.Fatal(err)
	}
	return counts
}

func hasAll(line string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(line, label) {
			return false
		}
	}
	return true
}
