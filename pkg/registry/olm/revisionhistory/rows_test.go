package revisionhistory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

func TestResult(t *testing.T) {
	type change func(*olm.ClusterExtensionRevision)
	is := func(conditions ...string) change {
		return func(r *olm.ClusterExtensionRevision) {
			for _, condition := range conditions {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
			}
		}
	}
	archived := func(r *olm.ClusterExtensionRevision) { r.Spec.LifecycleState = olm.LifecycleStateArchived }
	deleting := func(r *olm.ClusterExtensionRevision) { r.DeletionTimestamp = &metav1.Time{} }
	cases := map[string]struct {
		reason string
		is     []change
		older  bool
		row    string
		want   string
	}{
		"New":               {reason: "nothing is known yet"},
		"Progressing":       {reason: "as it says", is: []change{is("Progressing")}, want: "Progressing"},
		"Stalled":           {reason: "worse comes first", is: []change{is("Progressing", "Stalled")}, want: "Stalled"},
		"Failing":           {reason: "worse comes first", is: []change{is("Progressing", "Stalled", "Failing")}, want: "Failing"},
		"Recovered":         {reason: "what is now counts, not what was", is: []change{is("Progressing")}, row: "Failing", want: "Progressing"},
		"Succeeded":         {reason: "success stays", is: []change{is("Failing", "Succeeded")}, want: "Succeeded"},
		"Archived":          {reason: "given up before it was complete", is: []change{archived}, row: "Progressing", want: "Incomplete"},
		"ArchivedFailing":   {reason: "the head remembers why", is: []change{archived}, row: "Failing", want: "Failing"},
		"ArchivedSucceeded": {reason: "success stays", is: []change{archived, is("Succeeded")}, want: "Succeeded"},
		"Deleting":          {reason: "that it is torn down is no progress", is: []change{deleting, is("Progressing")}, want: "Incomplete"},
		"Overtaken":         {reason: "only the newest goes on", older: true, row: "Stalled", want: "Stalled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			revision := &olm.ClusterExtensionRevision{}
			for _, change := range tc.is {
				change(revision)
			}
			if got := result(revision, chain.Row{Result: tc.row}, !tc.older); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
