package rollout

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// nameExtensions is Penstock with ClusterExtensions from one catalog. nameByHelm is the same with
// the feature gate off. nameOurs is Penstock with the same content as plain revisions.
const (
	nameExtensions = "penstock, ClusterExtensions"
	nameByHelm     = "penstock, ClusterExtensions by Helm"
)

// mostRequests limits the requests of ClusterExtensions to the host, in percent of those for plain
// revisions.
const mostRequests = 130

// evenly is the limit of a ratio, in percent: no more than the reference.
const evenly = 100

// TestExtensions measures ClusterExtensions from one catalog beside plain revisions and Helm.
func TestExtensions(t *testing.T) {
	if os.Getenv("BENCH") != "extensions" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=extensions`")
	}
	counts := []int{10, 50, 100}
	switch os.Getenv("FULL") {
	case "0":
		counts = counts[:1]
	case "1":
		counts = append(counts, 1000)
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), peer: buildPeer(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	for _, n := range counts {
		t.Run(fmt.Sprint(n), func(t *testing.T) { b.fromCatalog(t, n) })
	}
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// fromCatalog installs n extensions with each system, and measures their cost during the
// installation and at rest.
func (b *bench) fromCatalog(t *testing.T, n int) {
	content := packagesOf(t, n)
	starters := map[string]func(*casePlane) system{
		nameExtensions: func(w *casePlane) system { return startCatalog(w, b.program, content, nameExtensions) },
		nameByHelm: func(w *casePlane) system {
			return startCatalog(w, b.program, content, nameByHelm, "--feature-gates=BoxcutterRuntime=false")
		},
		nameOurs: b.starters()[nameOurs],
	}
	names := []string{nameExtensions, nameByHelm, nameOurs}
	const tooMany = 1000
	if n < tooMany {
		// Helm installs them one after the other, which would be too slow for more.
		starters[nameHelm] = b.starters()[nameHelm]
		names = append(names, nameHelm)
	}
	installs, rests := map[string]sample{}, map[string]sample{}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			b.say("%d extensions: %s", n, name)
			w := newCasePlane(t, 0)
			w.namespaces(content.releases)
			s := starters[name](w)
			<-time.After(settling)
			written, began := b.profileCPU(w, s, fmt.Sprintf("%d %s", n, s.name()), n), w.cluster.Audit().Mark()
			installs[name] = w.step(s, func(ctx context.Context) (time.Duration, error) { return s.apply(ctx, content.releases) })
			written()
			b.sayRequests(fmt.Sprintf("%d extensions: %s", n, name), w.cluster.Audit().Since(began, s.sends, plane.Not(plane.ByVerb("watch"))))
			b.check(w, s, bundle{}, step{name: "install", leads: content.releases})
			<-time.After(afterwards)
			mark := w.cluster.Audit().Mark()
			rests[name] = w.step(s, func(ctx context.Context) (time.Duration, error) {
				select {
				case <-time.After(atRest):
				case <-ctx.Done():
				}
				return atRest, ctx.Err()
			})
			for _, request := range w.cluster.Audit().Since(mark, s.sends, plane.Not(plane.ByVerb("watch"))) {
				b.say("%d extensions: %s: at rest: %s", n, name, request)
			}
		})
	}
	title := fmt.Sprintf("%d extensions of %d objects from one catalog", n, len(content.releases[0].objects()))
	table := b.report.Table(title, "system", "installed after, s", "each, ms", "processor, s", "of kube-apiserver, s", "peak memory, MB", "memory at rest, MB", "writes", "dry-runs", "reads", "questions", "requests", "at rest in 10 s")
	for _, name := range names {
		did := installs[name]
		table.Row(name, fmt.Sprintf("%.1f", did.millis/1000), fmt.Sprintf("%.0f", did.millis/float64(n)), fmt.Sprintf("%.1f", did.clientCPU/1000), fmt.Sprintf("%.1f", did.serverCPU/1000),
			fmt.Sprintf("%.0f", did.peak/1e6), fmt.Sprintf("%.0f", rests[name].peak/1e6), fmt.Sprint(did.writes), fmt.Sprint(did.dryRuns), fmt.Sprint(did.reads), fmt.Sprint(did.asks), fmt.Sprint(did.requests()), fmt.Sprint(rests[name].requests()))
	}
	if bare := installs[nameOurs].requests(); bare > 0 {
		b.report.AtMost(fmt.Sprintf("requests of ClusterExtensions beside plain revisions, %d extensions", n), mostRequests, 100*float64(installs[nameExtensions].requests())/float64(bare), "%")
	}
	if byHelm := installs[nameByHelm].requests(); byHelm > 0 {
		b.report.AtMost(fmt.Sprintf("requests of ClusterExtensions beside those by Helm, %d extensions", n), evenly, 100*float64(installs[nameExtensions].requests())/float64(byHelm), "%")
	}
	b.report.AtMost(fmt.Sprintf("requests at rest in %s, %d extensions", atRest, n), 0, float64(rests[nameExtensions].requests()), "requests")
}

const (
	// afterwards is the time in which delayed writes follow: the store's mark after 2 s, and the
	// collector's writes, which start 10 s after the leader.
	afterwards = 15 * time.Second
	atRest     = 10 * time.Second
)

func (b *bench) sayRequests(title string, requests plane.Requests) {
	count := map[string]int{}
	for _, r := range requests {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if strings.Contains(r.URI, "dryRun=All") {
			what = "dry-run of " + what
		}
		if r.Code >= http.StatusBadRequest {
			what += fmt.Sprint(" ", r.Code)
		}
		count[what]++
	}
	for _, what := range slices.Sorted(maps.Keys(count)) {
		b.say("%s: %d times %s", title, count[what], what)
	}
}

// profileCPU profiles the server from now on, for about the time that n extensions take, into a
// file in the folder PROFILE. The returned function waits for the end. Without PROFILE it does
// nothing.
func (b *bench) profileCPU(w *casePlane, s system, title string, n int) (written func()) {
	w.t.Helper()
	dir := os.Getenv("PROFILE")
	var server *penstock.Server
	switch of := s.(type) {
	case *extensions:
		server = of.server
	case *ours:
		server = of.server
	}
	if dir == "" || server == nil {
		return func() {}
	}
	const perSecond = 10 // extensions, with two processors
	var running sync.WaitGroup
	running.Go(func() {
		content := server.Fetch(w.t, w.config, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(3, n/perSecond)))
		if err := os.WriteFile(profileFile(dir, title), []byte(content), 0o600); err != nil {
			w.t.Errorf("writing the profile: %v", err)
		}
	})
	return running.Wait
}

func profileFile(dir, title string) string {
	return filepath.Join(dir, strings.NewReplacer(" ", "-", ",", "").Replace("cpu "+title+".pprof"))
}
