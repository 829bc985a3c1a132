package rollout

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

// The number of objects and revisions of each extension.
const scaleObjects, scaleRevisions = 4, 5

// scaleExtensions returns the number of extensions of one process: EXTENSIONS, or 10,000 with
// FULL=1, 1,000 by default, and 50 with FULL=0.
func scaleExtensions(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("EXTENSIONS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("EXTENSIONS is %q, want a number of 1 or more", text)
		}
		return n
	}
	switch os.Getenv("FULL") {
	case "0":
		return 50
	case "1":
		return 10_000
	default:
		return 1000
	}
}

// TestScale shows the limits of one process: its memory, the time of a LIST, and the time from its
// start until it answers and until it has rolled out an extension.
func TestScale(t *testing.T) {
	if os.Getenv("BENCH") != "scale" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=scale`")
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	b.scale(t, scaleExtensions(t))
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) scale(t *testing.T, extensions int) {
	t.Helper()
	i := idleness{extensions: extensions, objects: scaleObjects, revisions: scaleRevisions}
	w := newCasePlane(t, 0)
	dataDir := penstock.DataDir(t)
	o := startAgain(nil, w, b.program, dataDir)
	empty := b.resident(w, o, i, "empty", measure.Memory{})
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
	defer cancel()
	releases := func(number int) []release {
		var all []release
		for n := range extensions {
			all = append(all, smallRelease(fmt.Sprintf("small-%05d", n), scaleObjects, fmt.Sprint(number), "1"))
		}
		return all
	}
	table := b.report.Table(i.String()+", one process", "what", "s", "CPU s", "MB")
	timed := func(what string, do func() (bytes int64)) {
		before, err := measure.CPUOf(o.server.Pid())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		bytes := do()
		took := time.Since(began)
		after, err := measure.CPUOf(o.server.Pid())
		if err != nil {
			t.Fatal(err)
		}
		size := ""
		if bytes > 0 {
			size = fmt.Sprintf("%.1f", measure.MB(bytes))
		}
		b.say("%s: %s", what, took.Round(time.Millisecond))
		table.Row(what, fmt.Sprintf("%.2f", took.Seconds()), fmt.Sprintf("%.2f", (after-before).Seconds()), size)
	}
	w.namespaces(releases(1))
	for number := range scaleRevisions {
		timed(fmt.Sprintf("revision %d of each", number+1), func() int64 {
			if _, err := o.apply(ctx, releases(number+1)); err != nil {
				t.Fatalf("%v\n%s", err, o.server.Complaints())
			}
			return 0
		})
	}
	b.resident(w, o, i, "at rest", empty)
	for _, read := range []struct{ what, accept, query string }{
		{"LIST, table", "application/json;as=Table;v=v1;g=meta.k8s.io", ""},
		{"LIST, table, the first 500", "application/json;as=Table;v=v1;g=meta.k8s.io", "500"},
		{"LIST, whole records", "application/json", ""},
	} {
		timed(read.what, func() int64 { return o.listed(ctx, read.accept, read.query) })
	}

	began := time.Now()
	o.server.Stop(t)
	stopped := time.Since(began)
	began = time.Now()
	o = startAgain(o, w, b.program, dataDir)
	answered := time.Since(began)
	if _, err := o.apply(ctx, releases(scaleRevisions + 1)[:1]); err != nil {
		t.Fatalf("%v\n%s", err, o.server.Complaints())
	}
	rolledOut := time.Since(began)
	for _, row := range []struct {
		what string
		took time.Duration
	}{{"stop", stopped}, {"from the start until the API answers", answered}, {"from the start until a new revision has Succeeded", rolledOut}} {
		b.say("%s: %s", row.what, row.took.Round(time.Millisecond))
		table.Row(row.what, fmt.Sprintf("%.2f", row.took.Seconds()), "", "")
	}
	b.resident(w, o, i, "restarted", empty)
}

func startAgain(before *ours, w *casePlane, program *penstock.Program, dataDir string) *ours {
	w.t.Helper()
	next := newOurs(w, nameOurs, false)
	if before != nil {
		next.numbers, next.contents = before.numbers, before.contents
	}
	next.start(program, dataDir)
	return next
}

// listed reads a whole LIST and returns its size in bytes.
func (o *ours) listed(ctx context.Context, accept, limit string) int64 {
	o.w.t.Helper()
	request := o.raw().Get().Resource("clusterextensionrevisions").SetHeader("Accept", accept).SetHeader("Accept-Encoding", "identity")
	if limit != "" {
		request = request.Param("limit", limit)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		o.w.t.Fatal(err)
	}
	defer stream.Close()
	n, err := io.Copy(io.Discard, stream)
	if err != nil {
		o.w.t.Fatal(err)
	}
	return n
}
