package metrics

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const (
	page = "../../../docs/reference/metrics.md"
	// The rows of the catalogue stand between these lines.
	begin, end = "<!-- begin: pkg/controller/metrics -->\n", "<!-- end: pkg/controller/metrics -->\n"
)

// The page says what the catalogue says. With PENSTOCK_UPDATE set it is made so.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has not the lines %q and %q", page, begin, end)
	}
	want := table()
	if os.Getenv("PENSTOCK_UPDATE") != "" {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what the catalogue says; PENSTOCK_UPDATE=1 go test -run TestPage ./pkg/controller/metrics makes it so (-want +got):\n%s", page, diff)
	}
}

// table is the catalogue as the page shows it.
func table() string {
	out := &strings.Builder{}
	fmt.Fprint(out, "| name | type | labels | exposed by | meaning |\n|---|---|---|---|---|\n")
	for _, m := range Catalogue() {
		where := "the leader"
		if m.EveryReplica {
			where = "every replica"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), where, m.Help)
	}
	return out.String()
}

// What is registered is what the catalogue lists, and nothing else.
func TestCatalogue(t *testing.T) {
	f := start(t, revision("a", 1, is("Ready", "True", 0), has(failingPhase())))
	f.put(revision("a", 1, is("Ready", "False", 1), has(failingPhase())))
	f.PhaseBegan("one", "deploy")
	f.PhaseComplete("one", "deploy")
	f.Repaired(object("", "ConfigMap", "x"), "someone")
	f.Contested(object("", "ConfigMap", "x"))
	f.send(t)
	if err := f.registry.Register(process(func() bool { return true })); err != nil {
		t.Fatal(err)
	}
	startPlans(t, f.registry, plan("a", hcov1alpha1.PhaseReviewRequired)).put(plan("a", hcov1alpha1.PhaseDrifted))
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[family.GetName()] = fmt.Sprintf("%s %v %s", strings.ToLower(family.GetType().String()), sorted(labels), family.GetHelp())
	}
	want := map[string]string{}
	for _, m := range Catalogue() {
		want[m.Name] = fmt.Sprintf("%s %v %s", m.Type, sorted(m.Labels), m.Help)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func failingPhase() olmv1alpha1.PhaseStatus {
	return olmv1alpha1.PhaseStatus{Objects: 1, Applied: 1, Failing: failing("ProbeFailed")}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
