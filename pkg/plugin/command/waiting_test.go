package command

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
)

// asks returns a ClusterExtension whose condition Ready is False, with another condition that is
// True.
func asks(name, reason, also, alsoReason string) unstructured.Unstructured {
	condition := func(of, status, reason string) any {
		return map[string]any{"type": of, "status": status, "reason": reason, "message": "because", "observedGeneration": int64(1), "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": map[string]any{"name": name, "generation": int64(1)},
		"spec": map[string]any{"namespace": "sea"}, "status": map[string]any{"conditions": []any{condition("Ready", "False", reason), condition(also, "True", alsoReason)}}}}
}

// TestWanted: status shows that a ClusterExtension without its requested version needs a user. Both
// its line and the table show that, even if its revisions are healthy.
func TestWanted(t *testing.T) {
	revision := &v1alpha1.ClusterExtensionRevision{}
	revision.Name, revision.Spec.Revision, revision.Spec.LifecycleState = "web-7", 7, v1alpha1.LifecycleStateActive
	shown := overview.Of([]*v1alpha1.ClusterExtensionRevision{revision})
	all, err := join(shown, []unstructured.Unstructured{
		asks("web", "NameTaken", "Stalled", "NameTaken"), asks("pull", "PullFailed", "Progressing", "Retrying"), asks("goes", "RollingOut", "Progressing", "Retrying"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range extensionsInNeed(all) {
		lines = append(lines, line.Text)
	}
	if got, want := strings.Join(lines, "|"), "pull: PullFailed: because; kubectl penstock why pull|web: NameTaken: because; kubectl penstock why web"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	table := extensionTable(all, time.Unix(0, 0))
	if len(table.Rows) != 3 {
		t.Errorf("rows: %v", table.Rows)
	}
	row := table.Rows[2]
	if last := row[len(row)-1]; last.Text != "NameTaken" {
		t.Errorf("its row says %s", last.Text)
	}
}
