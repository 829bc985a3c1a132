package reads

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/bench/operator"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

type settings struct {
	// revisions is the number of all revisions, chainLength the number per extension.
	revisions, chainLength int
	// rounds is the number of times that each LIST is read. burst is the number of reads per round,
	// for reads of about a millisecond.
	rounds, burst int
	full          bool
	rest          time.Duration
}

// readSettings returns the default settings, larger ones with FULL=1, and minimal ones with FULL=0,
// for work on the benchmark itself. REVISIONS=<n> sets the number of revisions.
func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{revisions: 5000, chainLength: 5, rounds: 5, burst: 25, rest: 20 * time.Second}
	switch os.Getenv("FULL") {
	case "0":
		s.revisions, s.rounds, s.burst, s.rest = 300, 3, 5, 2*time.Second
	case "1":
		s.rounds, s.burst, s.full = 21, 50, true
	}
	if number := os.Getenv("REVISIONS"); number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n <= historyLength {
			t.Fatalf("REVISIONS is %q: it must be a number above %d", number, historyLength)
		}
		s.revisions = n
	}
	return s
}

// TestReads runs the whole benchmark.
func TestReads(t *testing.T) {
	if os.Getenv("BENCH") != "reads" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=reads`")
	}
	s, report, began := readSettings(t), &measure.Report{}, time.Now()
	fmt.Println(measure.Machine(began))
	fmt.Println("The peer is the kube-apiserver behind whose aggregator Penstock is. Ratios are the medians of the rounds.")
	program := penstock.Build(t)
	t.Run("Mean", func(t *testing.T) {
		b := newBench(t, s, report, program, mean())
		b.memory(meanMemory())
		b.peers(true)
		b.lists()
		b.processors()
		b.singles()
		b.history()
		b.diffs()
		b.latencies()
		b.live()
	})
	t.Run("Sixty", func(t *testing.T) {
		b := newBench(t, s, report, program, sixty())
		b.memory(sixtyMemory())
		if s.full {
			b.peers(false)
			b.lists()
		}
	})
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(began).Round(time.Second))
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// TestMemory measures the memory.
func TestMemory(t *testing.T) {
	if os.Getenv("BENCH") != "memory" {
		t.Skip("a benchmark that takes minutes: run it by `make bench SUITE=memory`")
	}
	s, report, began := readSettings(t), &measure.Report{}, time.Now()
	fmt.Println(measure.Machine(began))
	program := penstock.Build(t)
	t.Run("Mean", func(t *testing.T) { newBench(t, s, report, program, mean()).memory(meanMemory()) })
	t.Run("Sixty", func(t *testing.T) { newBench(t, s, report, program, sixty()).memory(sixtyMemory()) })
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(began).Round(time.Second))
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// mean is an operator of average size, and sixty a large operator.
func mean() operator.Operator {
	return operator.Operator{Objects: operator.MeanObjects, Bytes: operator.MeanBytes}
}

func sixty() operator.Operator {
	const objects, bytesEach = 60, 800
	return operator.Operator{Objects: objects, Bytes: objects * bytesEach}
}

// bench is one store of revisions, with the peers that it is compared with.
type bench struct {
	*readsPlane
	settings settings
	report   *measure.Report
	operator operator.Operator
	// inline is true if custom resources with inline manifests exist.
	inline bool
}

func newBench(t *testing.T, s settings, report *measure.Report, program *penstock.Program, o operator.Operator) *bench {
	return &bench{readsPlane: newReadsPlane(t, program), settings: s, report: report, operator: o}
}

func (b *bench) title(what string) string {
	return fmt.Sprintf("%s, %d revisions of %d objects", what, b.settings.revisions, b.operator.Objects)
}

func (b *bench) run(title, reference string, c measure.Case) *measure.Result {
	b.t.Helper()
	b.say("measuring %s", c.Name)
	result, err := measure.Run(b.t.Context(), c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.profileCase(title, c)
	b.report.Result(title, result, reference)
	return result
}
