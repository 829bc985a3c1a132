package rollout

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

const (
	// costExtensions is the number of extensions that each step changes. costFirst is the number
	// that the first step installs on an empty server.
	costExtensions, costFirst = 200, 10
	costPatience              = 2 * time.Minute
	costObjects               = 4
	// costTarget limits the processor time of a revision in both processes together, in ms.
	costTarget = 15
)

// TestRevisionCost measures the processor time of a revision in Penstock's process and in its etcd.
// It reads both from /proc, so other processes hardly affect it.
func TestRevisionCost(t *testing.T) {
	if os.Getenv("BENCH") != "cost" {
		t.Skip("a benchmark of some minutes: run it by `make bench SUITE=cost`")
	}
	count := costExtensions
	if text := os.Getenv("EXTENSIONS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("EXTENSIONS is %q, want a number of 1 or more", text)
		}
		count = n
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	b.cost(t, count)
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) cost(t *testing.T, count int) {
	w := newCasePlane(t, 0)
	o := startOurs(w, b.program, nameOurs, false)
	<-time.After(settling)
	few := smallBundle(costFirst, costObjects)
	many := smallBundle(costFirst+count, costObjects)
	w.namespaces(many.first)
	for _, s := range []struct {
		name     string
		releases []release
		do       func(context.Context, []release) (time.Duration, error)
	}{
		{"install, the first", few.first, o.apply},
		{"install", many.first[costFirst:], o.apply},
		{"the same again", many.first[costFirst:], o.apply},
		{"upgrade, one field", many.touched[costFirst:], o.apply},
		{"upgrade, new version", many.next[costFirst:], o.apply},
		{"uninstall", many.next[costFirst:], o.remove},
	} {
		b.costOf(w, o, s.name, s.releases, s.do)
	}
}

func (b *bench) costOf(w *casePlane, o *ours, name string, releases []release, do func(context.Context, []release) (time.Duration, error)) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), costPatience)
	defer cancel()
	<-time.After(settling)
	before, mark := b.spent(w, o), w.cluster.Audit().Mark()
	profiled := b.profileCPU(w, o, name, len(releases))
	took, err := do(ctx, releases)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", name, err, o.server.Complaints())
	}
	<-time.After(settling)
	profiled()
	after := b.spent(w, o)
	var requests sample
	requests.count(w.cluster.Audit().Since(mark).Where(o.sends, plane.Not(plane.ByVerb("watch"))))
	n := float64(len(releases))
	of := func(what func(cost) float64) float64 { return (what(after) - what(before)) / n }
	each := func(what func(cost) float64) string { return fmt.Sprintf("%.1f", of(what)) }
	b.report.Table(fmt.Sprintf("Each of many extensions of %d small objects", costObjects),
		"step", "extensions", "ms in all", "CPU ms", "of the server", "of etcd", "kube-apiserver CPU ms", "KB allocated", "collections in all", "reads of the store", "writes of the store", "revisions of the store", "requests").
		Row(name, fmt.Sprint(len(releases)), fmt.Sprintf("%.0f", millis(took)),
			each(func(c cost) float64 { return c.server + c.etcd }), each(func(c cost) float64 { return c.server }), each(func(c cost) float64 { return c.etcd }),
			each(func(c cost) float64 { return c.apiserver }), each(func(c cost) float64 { return c.allocated / 1e3 }), fmt.Sprintf("%.0f", after.collections-before.collections),
			each(func(c cost) float64 { return c.reads }), each(func(c cost) float64 { return c.writes }), each(func(c cost) float64 { return c.revision }),
			fmt.Sprintf("%.1f", float64(requests.requests())/n))
	if name != "install, the first" && name != "the same again" {
		b.report.AtMost("processor time of "+name, costTarget, of(func(c cost) float64 { return c.server + c.etcd }), "ms")
	}
	if dir := os.Getenv("PROFILE"); dir != "" {
		if err := b.printParts(name, profileFile(dir, name), of(func(c cost) float64 { return c.server })); err != nil {
			w.t.Error(err)
		}
	}
	b.say("%s: %s", name, took.Round(time.Millisecond))
}

type cost struct {
	// server, etcd and apiserver are processor time, in ms.
	server, etcd, apiserver float64
	// allocated is the number of bytes that the server's process has allocated. collections is the
	// number of its garbage collections.
	allocated, collections float64
	// reads and writes count requests to etcd. revision is etcd's revision.
	reads, writes, revision float64
}

func (b *bench) spent(w *casePlane, o *ours) cost {
	w.t.Helper()
	c := cost{}
	for pid, ms := range map[int]*float64{o.server.Pid(): &c.server, o.server.Etcd(w.t): &c.etcd, w.apiserver: &c.apiserver} {
		used, err := measure.CPUOf(pid)
		if err != nil {
			w.t.Fatal(err)
		}
		*ms = millis(used)
	}
	lines := bufio.NewScanner(strings.NewReader(o.server.Fetch(w.t, w.config, "/metrics")))
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 {
			continue
		}
		name := lines.Text()[:at]
		value, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		if err != nil {
			continue
		}
		switch {
		case name == "go_memstats_alloc_bytes_total":
			c.allocated = value
		case name == "go_gc_cycles_total_gc_cycles_total":
			c.collections = value
		case name == "etcd_debugging_mvcc_current_revision":
			c.revision = value
		case strings.HasPrefix(name, "grpc_server_handled_total{") && strings.Contains(name, `grpc_service="etcdserverpb.KV"`):
			switch {
			case strings.Contains(name, `grpc_method="Range"`):
				c.reads += value
			case strings.Contains(name, `grpc_method="Txn"`), strings.Contains(name, `grpc_method="Put"`):
				c.writes += value
			}
		}
	}
	return c
}
