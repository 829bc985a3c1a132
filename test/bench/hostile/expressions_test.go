package hostile

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/hostile"
)

// mostPerPass limits the processor time of expressions in a pass, in seconds.
const mostPerPass = 0.1

// spent returns the processor time of this process for a call, including the collection of its
// garbage.
func spent(t *testing.T, call func()) time.Duration {
	t.Helper()
	runtime.GC()
	before := usage(t)
	call()
	runtime.GC()
	return usage(t) - before
}

func usage(t *testing.T) time.Duration {
	t.Helper()
	used, err := measure.OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// least returns the minimum of several measurements, because other load on the machine only adds
// time.
func least(t *testing.T, call func()) time.Duration {
	t.Helper()
	found := time.Hour
	for range 3 {
		found = min(found, spent(t, call))
	}
	return found
}

// expressions measures each expression with the whole budget of a pass, and the compilation of the
// longest revisions.
func expressions(t *testing.T, report *measure.Report) {
	debug.SetGCPercent(100)
	object := &unstructured.Unstructured{Object: hostile.Object()}
	kind := schema.GroupKind{Kind: "Widget"}
	base := least(t, func() {}).Seconds()
	table := report.Table("Expressions, each for a whole pass", "expression", "processor, ms", "memory, MiB", "units")
	worst := 0.0
	for _, name := range hostile.Names(hostile.Expressions()) {
		set, err := probe.New([]probe.Spec{{
			Selector:   probe.Selector{GroupKind: &kind},
			Assertions: []probe.Assertion{{CEL: &probe.CEL{Expression: hostile.Expressions()[name]}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		judged := set.For(kind).(probe.Metered)
		var budget *probe.CostBudget
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took := least(t, func() {
			budget = probe.NewCostBudget(probe.MaxCELCost)
			judged.ProbeWithin(t.Context(), object, budget)
		}).Seconds() - base
		runtime.ReadMemStats(&after)
		worst = max(worst, took)
		table.Row(name, fmt.Sprintf("%.0f", took*1000), fmt.Sprint((after.TotalAlloc-before.TotalAlloc)/3>>20), fmt.Sprint(budget.Spent()))
	}
	report.AtMost("expressions of the worst revision in a pass", mostPerPass*1000, worst*1000, "ms of processor time")
	compilations(t, report, base)
}

func compilations(t *testing.T, report *measure.Report, base float64) {
	worst := 0.0
	table := report.Table("Compiling the expressions of one revision", "expression", "when it is created, ms", "when it is rolled out, ms", "compilations")
	for _, name := range hostile.Names(hostile.Compilations()) {
		texts := different(hostile.Compilations()[name])
		took := least(t, func() {
			check := probe.NewCELChecker()
			wrong := 0
			for _, text := range texts {
				if check(text) != nil {
					if wrong++; wrong == 10 {
						break
					}
				}
			}
		}).Seconds() - base
		spec := probe.Spec{Selector: probe.Selector{GroupKind: &schema.GroupKind{Kind: "Widget"}}}
		for _, text := range texts {
			spec.Assertions = append(spec.Assertions, probe.Assertion{CEL: &probe.CEL{Expression: text}})
		}
		valid := true
		again := least(t, func() {
			_, err := probe.New([]probe.Spec{spec})
			valid = err == nil
		}).Seconds() - base
		rolledOut := "refused"
		if valid {
			rolledOut = fmt.Sprintf("%.0f", again*1000)
			worst = max(worst, again)
		}
		table.Row(name, fmt.Sprintf("%.0f", took*1000), rolledOut, fmt.Sprint(len(texts)))
	}
	report.AtMost("compiling the expressions of the worst revision, once", mostPerPass*1000, worst*1000, "ms of processor time")
}

// different returns as many variants of an expression as a revision may have.
func different(expression string) []string {
	var all []string
	for length := 0; len(all) < v1alpha1.MaxAssertions && length+len(expression)+6 < v1alpha1.MaxExpressionsBytes; {
		variant := strings.Replace(expression, "1", fmt.Sprint(len(all)+2), 1)
		if variant == expression {
			variant += fmt.Sprintf("||%d==1", len(all)+2)
		}
		all, length = append(all, variant), length+len(variant)
	}
	return all
}
