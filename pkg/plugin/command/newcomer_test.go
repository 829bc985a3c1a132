package command

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
)

// TestMistakes: who mistypes is told what is wrong, before anything else is asked of them.
func TestMistakes(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	const unknown = `there is no extension, revision or plan "nothing"`
	for _, tc := range []struct {
		says string
		args []string
	}{
		{unknown, []string{"status", "nothing"}}, {unknown, []string{"why", "nothing"}}, {unknown, []string{"history", "nothing"}},
		{unknown, []string{"rollback", "nothing"}}, {unknown, []string{"plan", "show", "nothing"}}, {unknown, []string{"plan", "approve", "nothing"}},
		{"nodir: no such directory", []string{"deploy", "nodir", "--name", "new"}},
		{"status", []string{"statsu"}},
	} {
		if _, stderr, code := run(t, server, 0, nil, tc.args...); code != 2 || !strings.Contains(stderr, tc.says) {
			t.Errorf("%v: exit %d: %s", tc.args, code, stderr)
		}
	}
	if stdout, _, code := run(t, server, 0, nil, "--version"); code != 0 || stdout != "kubectl-penstock v0.0.0-test\n" {
		t.Errorf("exit %d: %s", code, stdout)
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
