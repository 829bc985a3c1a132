package rollout

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	nameOurs     = "penstock"
	nameBare     = "penstock, bare"
	nameHelm     = "Helm SDK"
	nameKubectl  = "kubectl"
	nameParallel = "loop, parallel"
)

// parallel is the number of objects of a release that Penstock and the loop write in parallel.
const parallel = 8

type settings struct {
	repeats    int
	extensions []int
	roundTrips []time.Duration
	idlenesses []idleness
}

func readSettings() settings {
	// A user's cluster is usually remote, so both are measured.
	s := settings{repeats: 2, extensions: []int{10}, roundTrips: []time.Duration{0, 5 * time.Millisecond}}
	switch os.Getenv("FULL") {
	case "0":
		s.repeats = 1
	case "1":
		s.repeats = 3
		s.extensions = []int{1, 10, 100, 1000}
		s.idlenesses = []idleness{
			{extensions: 100, objects: 4, revisions: 1, memory: 20}, {extensions: 1000, objects: 4, revisions: 1, memory: 150},
			{extensions: 1000, objects: 50, revisions: 5, memory: 200},
		}
	}
	return s
}

type bench struct {
	settings
	report  *measure.Report
	program *penstock.Program
	peer    string
	began   time.Time
}

// TestRollout runs the whole benchmark.
func TestRollout(t *testing.T) {
	if os.Getenv("BENCH") != "rollout" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=rollout`")
	}
	b := &bench{settings: readSettings(), report: &measure.Report{}, program: penstock.Build(t), peer: buildPeer(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	for _, roundTrip := range b.roundTrips {
		t.Run(fmt.Sprintf("One/%s", roundTrip), func(t *testing.T) { b.one(t, roundTrip) })
		for _, n := range b.extensions {
			t.Run(fmt.Sprintf("Many/%d/%s", n, roundTrip), func(t *testing.T) { b.many(t, n, roundTrip) })
		}
	}
	for _, i := range b.idlenesses {
		t.Run("Idle/"+i.String(), func(t *testing.T) { b.idle(t, i) })
	}
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) say(format string, args ...any) {
	fmt.Printf("%5.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func (b *bench) starters() map[string]func(*casePlane) system {
	return map[string]func(*casePlane) system{
		nameOurs:     func(w *casePlane) system { return startOurs(w, b.program, nameOurs, false) },
		nameBare:     func(w *casePlane) system { return startOurs(w, b.program, nameBare, true, "--preflight=false") },
		nameHelm:     func(w *casePlane) system { return startPeer(w, b.peer, nameHelm, "helm", parallel) },
		nameKubectl:  func(w *casePlane) system { return startKubectl(w) },
		nameParallel: func(w *casePlane) system { return startPeer(w, b.peer, nameParallel, "loop", parallel) },
	}
}

type step struct {
	name string
	do   func(w *casePlane, s system) sample
	// leads are the releases whose markers must be in the cluster afterwards; nil if nothing must
	// be left.
	leads []release
}

func steps(b bundle, many bool) []step {
	apply := func(name string, releases []release) step {
		return step{name: name, leads: releases, do: func(w *casePlane, s system) sample {
			return w.step(s, func(ctx context.Context) (time.Duration, error) { return s.apply(ctx, releases) })
		}}
	}
	all := []step{
		apply("install", b.first),
		apply("the same again", b.first),
		apply("upgrade, one field", b.touched),
		apply("upgrade, new version", b.next),
	}
	if !many {
		all = append(all, step{name: "rollback", leads: b.touched, do: func(w *casePlane, s system) sample {
			return w.step(s, func(ctx context.Context) (time.Duration, error) { return s.rollback(ctx, b.touched) })
		}}, step{name: "drift of one object", leads: b.touched, do: func(w *casePlane, s system) sample {
			return w.step(s, func(ctx context.Context) (time.Duration, error) {
				w.drift(b.touched[0])
				return s.repair(ctx, b.touched)
			})
		}})
	}
	return append(all, step{name: "uninstall", do: func(w *casePlane, s system) sample {
		return w.step(s, func(ctx context.Context) (time.Duration, error) {
			return s.remove(ctx, b.next)
		})
	}})
}

func (b *bench) run(t *testing.T, bundle bundle, roundTrip time.Duration, start func(*casePlane) system) map[string]sample {
	t.Helper()
	w := newCasePlane(t, roundTrip)
	w.namespaces(bundle.first)
	w.namespaces(bundle.next)
	s := start(w)
	<-time.After(settling)
	samples := map[string]sample{}
	for _, step := range steps(bundle, len(bundle.first) > 1) {
		samples[step.name] = step.do(w, s)
		b.check(w, s, bundle, step)
	}
	return samples
}

func (b *bench) check(w *casePlane, s system, bundle bundle, step step) {
	w.t.Helper()
	if step.leads == nil {
		for _, r := range bundle.next {
			if image := w.image(r); image != "" {
				w.t.Errorf("%s: behind %s %s is still there", s.name(), step.name, r.name)
			}
		}
		return
	}
	for _, r := range step.leads {
		if got, want := w.image(r), container(marker(r))["image"]; got != want {
			w.t.Errorf("%s: behind %s %s has the image %q, want %q", s.name(), step.name, r.name, got, want)
		}
	}
}

func (b *bench) one(t *testing.T, roundTrip time.Duration) {
	bundle := realBundle(t)
	systems := []string{nameOurs, nameBare, nameHelm, nameKubectl, nameParallel}
	c := b.measure(t, bundle, roundTrip, systems)
	b.judgeOne(c, roundTrip)
}

// many measures many small extensions. Systems that handle them one after the other are skipped for
// large numbers: they take linear time, which shows nothing new.
func (b *bench) many(t *testing.T, n int, roundTrip time.Duration) {
	const objects, tooMany = 4, 1000
	systems := []string{nameOurs, nameParallel}
	if n < tooMany {
		systems = append(systems, nameHelm, nameKubectl)
	}
	if n == 1 {
		systems = append(systems, nameBare)
	}
	c := b.measure(t, smallBundle(n, objects), roundTrip, systems)
	b.judgeMany(c, n, roundTrip)
}
