package clusterextensionrevision

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

var update = flag.Bool("update", false, "write golden files")

func condition(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "message of " + reason}
}

func TestTable(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	deleted := metav1.NewTime(now)
	revision := func(name string, number int64, change func(*olm.ClusterExtensionRevision)) olm.ClusterExtensionRevision {
		r := olm.ClusterExtensionRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Minute))},
			Spec: olm.ClusterExtensionRevisionSpec{
				Revision: number, LifecycleState: olm.LifecycleStateActive,
				Phases: []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 2)}, {Objects: make([]olm.RevisionObject, 1)}},
			},
		}
		change(&r)
		return r
	}
	conditions := func(list ...metav1.Condition) func(*olm.ClusterExtensionRevision) {
		return func(r *olm.ClusterExtensionRevision) { r.Status.Conditions = list }
	}
	list := &olm.ClusterExtensionRevisionList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"},
		Items: []olm.ClusterExtensionRevision{
			revision("new-1", 1, func(r *olm.ClusterExtensionRevision) { r.CreationTimestamp = metav1.Time{} }),
			revision("rolling-out-2", 2, conditions(condition("Available", "False", "NotYet"), condition("Progressing", "True", "RollingOut"), condition("Failing", "False", "None"))),
			revision("failing-3", 3, conditions(condition("Progressing", "True", "RollingOut"), condition("Stalled", "True", "Deadline"), condition("Failing", "True", "Collision"))),
			revision("stalled-4", 4, conditions(condition("Progressing", "True", "RollingOut"), condition("Stalled", "True", "Deadline"))),
			revision("broken-5", 5, conditions(condition("Ready", "False", "Degraded"), condition("Available", "False", "ProbeFailed"), condition("Progressing", "False", "Done"))),
			revision("well-10", 10, func(r *olm.ClusterExtensionRevision) {
				r.Annotations = map[string]string{v1alpha1.VersionAnnotation: "v1.10.0"}
				r.Status.Phases = []olm.PhaseStatus{{Name: "crds", State: olm.PhaseStateAvailable, Available: 2}, {Name: "deploy", State: olm.PhaseStateProgressing, Objects: 1}}
			}),
			revision("well-6", 6, conditions(condition("Ready", "True", "Well"), condition("Available", "True", "ProbesPass"), condition("Progressing", "False", "Done"))),
			revision("archived-7", 7, func(r *olm.ClusterExtensionRevision) { r.Spec.LifecycleState = olm.LifecycleStateArchived }),
			revision("deleted-8", 8, func(r *olm.ClusterExtensionRevision) { r.DeletionTimestamp = &deleted }),
		},
	}
	printed, err := table{clock: testingclock.NewFakePassiveClock(now)}.ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if printed.ResourceVersion != "7" || printed.Continue != "next" {
		t.Errorf("resourceVersion %q, continue %q: clients cannot watch or page", printed.ResourceVersion, printed.Continue)
	}
	for i := range printed.Rows {
		if row := printed.Rows[i]; row.Object.Object.(*olm.ClusterExtensionRevision).Name != row.Cells[0] {
			t.Errorf("row %d does not have its revision", i)
		}
	}
	golden(t, "table.txt", render(printed))

	single, err := table{clock: testingclock.NewFakePassiveClock(now)}.ConvertToTable(t.Context(), &list.Items[0], &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(single.Rows) != 1 || single.ColumnDefinitions != nil {
		t.Errorf("one revision without headers has %d rows and %d columns", len(single.Rows), len(single.ColumnDefinitions))
	}
}

// render prints a table as kubectl -o wide does.
func render(table *metav1.Table) []byte {
	var out bytes.Buffer
	writer := tabwriter.NewWriter(&out, 0, 0, 3, ' ', tabwriter.DiscardEmptyColumns)
	for _, column := range table.ColumnDefinitions {
		_, _ = fmt.Fprintf(writer, "%s(%d)\t", column.Name, column.Priority)
	}
	_, _ = fmt.Fprintln(writer)
	for _, row := range table.Rows {
		for _, cell := range row.Cells {
			_, _ = fmt.Fprintf(writer, "%v\t", cell)
		}
		_, _ = fmt.Fprintln(writer)
	}
	_ = writer.Flush()
	return out.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, write it with -update):\n%s", path, diff)
	}
}

// TestSummary: the first lines of kubectl describe.
func TestSummary(t *testing.T) {
	failing := func(name, message string) olm.ObjectFailure {
		return olm.ObjectFailure{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "argocd", Name: name, Reason: "ProbeFailed", Message: message}
	}
	first := "phase deploy (2 of 2): Deployment.apps argocd/server: 0 of 1 replica available"
	r := &olm.ClusterExtensionRevision{}
	r.Status.Conditions = []metav1.Condition{condition("Ready", "False", "NotYet"), {Type: "Available", Status: "False", Reason: "Unavailable", Message: first}}
	check := func(reason, want string) {
		t.Helper()
		summarize(r)
		if diff := cmp.Diff(want, r.Annotations[v1alpha1.SummaryAnnotation]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	check("nothing is known of objects", "Unavailable: "+first)
	line := "Unavailable: " + first + "\nReady=False (NotYet), Available=False (Unavailable)"
	r.Status.Phases = []olm.PhaseStatus{{Name: "deploy", Failing: []olm.ObjectFailure{failing("server", "0 of 1 replica available")}}}
	check("one object, named already", line)
	long := strings.TrimSpace(strings.Repeat("word ", 40))
	r.Status.Phases[0].Failing = append(r.Status.Phases[0].Failing, failing("repo", "not found"), failing("long", long))
	check("others, and what is too long for a line of describe", line+
		"\ndeploy: Deployment argocd/repo: ProbeFailed: not found\ndeploy: Deployment argocd/long: ProbeFailed: "+
		strings.TrimSpace(strings.Repeat("word ", 18))+"\n  "+strings.TrimSpace(strings.Repeat("word ", 22)))
	r.Status.Phases[0].Failing = r.Status.Phases[0].Failing[:1]
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		r.Status.Phases[0].Failing = append(r.Status.Phases[0].Failing, failing(name, "x"))
	}
	r.Status.Phases[0].FailingOmitted = 3
	summarize(r)
	if got := r.Annotations[v1alpha1.SummaryAnnotation]; !strings.HasSuffix(got, "argocd/e: ProbeFailed: x\nand 4 more") {
		t.Errorf("many objects: %s", got)
	}
}

// BenchmarkTable prints as many revisions as the read benchmark reads.
func BenchmarkTable(b *testing.B) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	list := &olm.ClusterExtensionRevisionList{}
	for i := range 5000 {
		r := olm.ClusterExtensionRevision{}
		r.Name = fmt.Sprintf("operator-%04d-%d", i/5, 1+i%5)
		r.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(i) * time.Second))
		r.Annotations = map[string]string{v1alpha1.VersionAnnotation: fmt.Sprintf("1.%d.0", i%5)}
		r.Spec.Revision, r.Spec.LifecycleState = int64(1+i%5), olm.LifecycleStatePaused
		r.Spec.Phases = []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 1)}, {Objects: make([]olm.RevisionObject, 12)}}
		r.Status.Conditions = []metav1.Condition{condition("Available", "Unknown", "Paused"), condition("Progressing", "False", "Paused"), condition("Succeeded", "False", "NotYet")}
		r.Status.Phases = []olm.PhaseStatus{{Name: "crds", State: olm.PhaseStatePending, Objects: 1}, {Name: "deploy", State: olm.PhaseStatePending, Objects: 12}}
		list.Items = append(list.Items, r)
	}
	printer := table{clock: testingclock.NewFakePassiveClock(now)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := printer.ConvertToTable(b.Context(), list, &metav1.TableOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
