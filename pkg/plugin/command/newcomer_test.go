package command

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
)

// TestMistakes: a mistyped name gets one sentence with the existing names, before any question. Its
// exit code is No; wrong usage has another code.
func TestMistakes(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	const unknown = `there is no extension, revision or plan "nothing"; the cluster has extensions lighthouse and shop, and plan rebalance`
	const number = "lighthouse has no revision lighthouse-9; it has lighthouse-1, lighthouse-2 and lighthouse-3"
	for _, tc := range []struct {
		code int
		says string
		args string
	}{
		{1, unknown, "status nothing"}, {1, unknown, "status nothing -w"}, {1, unknown, "status nothing -w -o json"}, {1, unknown, "why nothing"}, {1, unknown, "history nothing"},
		{1, unknown, "rollback nothing"}, {1, unknown, "tree nothing"}, {1, unknown, "diff nothing"}, {1, unknown, "diff nothing --live"}, {1, unknown, "pause nothing"},
		{1, unknown, "plan show nothing"}, {1, unknown, "plan approve nothing"}, {1, unknown, "plan reject nothing"}, {1, unknown, "plan run nothing"},
		{1, unknown, "plan stop nothing"}, {1, unknown, "plan undo nothing"}, {1, unknown, "plan history nothing"},
		{1, number, "status lighthouse-9"}, {1, number, "why lighthouse-9"}, {1, number, "diff lighthouse-9"}, {1, number, "diff lighthouse-1..lighthouse-9"}, {1, number, "archive lighthouse-9"},
		{1, "lighthouse has no revision 9 to go back to; it has lighthouse-1, lighthouse-2, lighthouse-3 and lighthouse-4", "rollback lighthouse --to 9"},
		{1, "plan rebalance has no run 9; it has 1 and 2", "plan undo rebalance --run 9"},
		{1, "rebalance is a plan: kubectl penstock plan show rebalance", "status rebalance"}, {1, "rebalance is a plan: kubectl penstock plan show rebalance", "pause rebalance"},
		{1, "lighthouse is an extension: kubectl penstock status lighthouse", "plan show lighthouse"},
		{2, `"deployment/x" is not the name of an extension or a revision, such as lighthouse`, "tree deployment/x"}, {2, `"Deployment/x" is not the name of`, "why Deployment/x"},
		{2, `--to "one"`, "rollback lighthouse --to one"},
		{2, "--namespace foo is not allowed here", "status -n foo"},
		{2, "want json, yaml or name", "status -o markdown"},
		{2, "it needs --dry-run", "rollback lighthouse -o markdown"},
		{2, "nodir: no such directory", "deploy nodir --name new"},
		{2, "status", "statsu"},
	} {
		if _, stderr, code := run(t, server, 0, nil, strings.Fields(tc.args)...); code != tc.code || !strings.Contains(stderr, tc.says) {
			t.Errorf("%s: exit %d: %s", tc.args, code, stderr)
		}
	}
	if stdout, _, code := run(t, server, 0, nil, "--version"); code != 0 || stdout != "kubectl-penstock v0.0.0-test\n" {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestWithoutRevisions: an extension without revisions is shown with the reason. A command in the
// reason stays on one line, even on a narrow terminal, so that it can be copied.
func TestWithoutRevisions(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	for command, begins := range map[string]string{"status": "✗ denied is not installed: ", "why": "✗ denied is not installed: ", "history": "Error: ClusterExtension denied has no revisions: Denied:"} {
		stdout, stderr, code := run(t, server, 60, map[string]string{"NO_COLOR": "1"}, command, "denied")
		said := stdout + stderr
		if code != 1 || !strings.HasPrefix(said, begins) {
			t.Errorf("%s: exit %d: %s", command, code, said)
		}
		for _, line := range []string{"kubectl apply -f - <<'EOF'", "kind: ClusterRoleBinding", "EOF"} {
			if !strings.Contains(said, "\n"+line+"\n") {
				t.Errorf("%s: %q is no line of its own in:\n%s", command, line, said)
			}
		}
	}
}

func TestAlreadyThere(t *testing.T) {
	row := func(name, state string) v1alpha1.RevisionRecord {
		return v1alpha1.RevisionRecord{Name: name, State: state, Result: v1alpha1.ResultSucceeded}
	}
	rows := []v1alpha1.RevisionRecord{row("a-1", "Archived"), row("a-2", "Archived"), row("a-3", "Active")}
	for want, target := range map[string]string{"a-3 has that content already; --to a-1 goes further back": "a-2", "a-3 has that content already": "a-1"} {
		if got := alreadyThere(rows, "a-3", target); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rows[2].State = "Archived"
	if got := alreadyThere(rows, "a-3", "a-1"); got != "" {
		t.Errorf("nothing runs, and it says %q", got)
	}
}

func TestFreezeText(t *testing.T) {
	frozen := &corev1.ConfigMap{Data: map[string]string{"author": "jo", "reason": "the year ends"}}
	frozen.CreationTimestamp.Time = recordedAt()
	if got := freezeText(frozen); got != "frozen by jo since 2026-11-23T01:46:00Z: the year ends" {
		t.Error(got)
	}
}

// TestSameChanges: either the shown changes are stored, or nothing is rolled out.
func TestSameChanges(t *testing.T) {
	diff := func(change func(*v1alpha1.RevisionDiff)) *v1alpha1.RevisionDiff {
		out := &v1alpha1.RevisionDiff{From: "a-1", To: "a-2", Summary: v1alpha1.DiffSummary{Removed: 1, RemovedDigest: "x"}, Changes: []v1alpha1.ObjectChange{{Kind: "ConfigMap", Unified: "-a"}}}
		change(out)
		return out
	}
	shown := diff(func(d *v1alpha1.RevisionDiff) { d.Summary.RemovedDigest = "" })
	for name, tc := range map[string]struct {
		stored *v1alpha1.RevisionDiff
		want   bool
	}{
		"the same":         {diff(func(*v1alpha1.RevisionDiff) {}), true},
		"another before":   {diff(func(d *v1alpha1.RevisionDiff) { d.From = "a-0" }), false},
		"more removed":     {diff(func(d *v1alpha1.RevisionDiff) { d.Summary.Removed = 2 }), false},
		"more is withheld": {diff(func(d *v1alpha1.RevisionDiff) { d.Summary.Withheld = 1 }), false},
		"another line":     {diff(func(d *v1alpha1.RevisionDiff) { d.Changes[0].Unified = "-b" }), false},
	} {
		if got := sameChanges(shown, tc.stored); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
