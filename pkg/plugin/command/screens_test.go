package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func recordedAt() time.Time { return time.Date(2026, 11, 23, 1, 46, 0, 0, time.UTC) }

// run runs a command on recorded answers, on a terminal of a given width, or without a terminal.
func run(t testing.TB, server *plugintest.Server, columns int, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	at := []string{"--kubeconfig", server.Kubeconfig()}
	code = Main(t.Context(), session.Process{
		Name: "kubectl-penstock", Args: append(append(args[:1:1], at...), args[1:]...),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors,
		Getenv:   func(name string) string { return env[name] },
		Terminal: func(any) (screen.Size, bool) { return screen.Size{Columns: columns, Lines: 40}, columns > 0 },
		Clock:    clocktesting.NewFakeClock(recordedAt()), Version: "v0.0.0-test",
	})
	return out.String(), errors.String(), code
}

// TestScreens compares the output at 80 and 160 columns with a file. UPDATE=1 writes the file.
func TestScreens(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"status":            {[]string{"status"}, 0},
		"status-lighthouse": {[]string{"status", "lighthouse"}, 0},
		"diff":              {[]string{"diff", "lighthouse-1..lighthouse-2"}, 1},
		"tree":              {[]string{"tree", "lighthouse-3"}, 0},
		"history":           {[]string{"history", "lighthouse"}, 0},
		"ready":             {[]string{"ready", "1.38"}, 1},
		"plan-list":         {[]string{"plan", "list"}, 0},
		"plan-show":         {[]string{"plan", "show", "rebalance"}, 0},
		"plan-history":      {[]string{"plan", "history", "rebalance"}, 0},
	} {
		for _, columns := range []int{80, 160} {
			t.Run(fmt.Sprintf("%s/%d", name, columns), func(t *testing.T) {
				stdout, stderr, code := run(t, server, columns, map[string]string{"NO_COLOR": "1"}, tc.args...)
				if code != tc.code {
					t.Errorf("exit %d, want %d", code, tc.code)
				}
				golden(t, fmt.Sprintf("%s-%d.txt", name, columns), stdout+stderr)
				for line := range strings.Lines(stdout) {
					// Lines of manifests are not wrapped.
					if line = strings.TrimSuffix(line, "\n"); !strings.Contains("+-@ ", line[:min(1, len(line))]) && screen.Width(line) > columns && strings.Contains(line, "   ") {
						t.Errorf("%d columns: %s", screen.Width(line), line)
					}
				}
				if strings.Contains(stdout+stderr, "\x1b") {
					t.Error("NO_COLOR, and there are escapes")
				}
			})
		}
	}
}

// TestMarkdown: the diff is suitable for the comment of a review.
func TestMarkdown(t *testing.T) {
	stdout, _, code := run(t, plugintest.New(t, "testdata/recorded"), 0, nil, "diff", "lighthouse-1..lighthouse-2", "-o", "markdown")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	golden(t, "diff.md", stdout)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "screens", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not the screen any more (UPDATE=1 writes it anew):\n%s", path, got)
	}
}

// TestColours: colours do not change the words, and are absent without a terminal.
func TestColours(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	plain, _, _ := run(t, server, 0, nil, "diff", "lighthouse-1..lighthouse-2")
	painted, _, _ := run(t, server, 0, nil, "diff", "lighthouse-1..lighthouse-2", "--color=always")
	if strings.Contains(plain, "\x1b") || !strings.Contains(painted, "\x1b[32m+") {
		t.Errorf("colours: %q, %q", plain[:80], painted[:80])
	}
	for _, style := range []screen.Style{screen.Bold, screen.Dim, screen.Red, screen.Green, screen.Yellow, screen.Cyan, "\x1b[0m"} {
		painted = strings.ReplaceAll(painted, string(style), "")
	}
	if painted != plain {
		t.Errorf("without colours it says something else:\n%s", painted)
	}
	if _, stderr, code := run(t, server, 0, nil, "status", "--color=blue"); code != 2 || !strings.Contains(stderr, "auto, always or never") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestSkew: a server of another minor version causes one warning. Versions that are not releases
// cause none.
func TestSkew(t *testing.T) {
	for version, want := range map[string]bool{"v0.0.7": false, "v0.1.0": true, "devel-123": false, "": false} {
		server := plugintest.New(t, "testdata/recorded")
		server.Version = version
		_, stderr, code := run(t, server, 0, nil, "status")
		if got := strings.Count(stderr, "the server is Penstock "+version) == 1; code != 0 || got != want {
			t.Errorf("%q: exit %d, told: %t, want %t: %s", version, code, got, want, stderr)
		}
	}
	server := plugintest.New(t, "testdata/recorded")
	server.Version = "v0.1.0"
	if stdout, _, code := run(t, server, 0, nil, "version"); code != 1 || !strings.Contains(stdout, "penstock         v0.1.0") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestUnserved: without Penstock, or without a kubeconfig, the error gives the next step. Shell
// completion does not wait.
func TestUnserved(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	server.Close()
	if _, stderr, code := run(t, server, 0, nil, "status"); code != 2 || !strings.Contains(stderr, "listing revisions") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if stdout, _, code := run(t, server, 0, nil, "__complete", "status", ""); code != 0 || !strings.Contains(stdout, ":4") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestRequests: each screen sends the expected requests.
func TestRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		most int
		args []string
	}{
		"status of all": {4, []string{"status"}}, "status of one": {3, []string{"status", "lighthouse"}},
		"diff": {1, []string{"diff", "lighthouse-1..lighthouse-2"}}, "plan": {2, []string{"plan", "show", "rebalance"}},
		"tree": {4, []string{"tree", "lighthouse-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t, "testdata/recorded")
			run(t, server, 0, nil, tc.args...)
			if asked := server.Requests(); len(asked) > tc.most {
				t.Errorf("%d requests, want at most %d:\n%s", len(asked), tc.most, strings.Join(asked, "\n"))
			}
		})
	}
}

// TestOutputs: every command has output for machines.
func TestOutputs(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"clusterextensionrevision.olm.operatorframework.io/lighthouse-3\n", []string{"status", "lighthouse-3", "-o", "name"}},
		{`"kind": "List"`, []string{"status", "-o", "json"}},
		{"kind: RevisionDiff\n", []string{"diff", "lighthouse-1..lighthouse-2", "-o", "yaml"}},
		{"revisionhistory.olm.operatorframework.io/lighthouse\n", []string{"history", "lighthouse", "-o", "name"}},
		{`"kind": "RevisionObjects"`, []string{"tree", "lighthouse-3", "-o", "json"}},
		{"kind: UpgradeReadiness\n", []string{"ready", "1.38", "-o", "yaml"}},
		{"configurationplan.hco.kubevirt.io/rebalance\n", []string{"plan", "list", "-o", "name"}},
		{"kind: ConfigurationPlan\n", []string{"plan", "show", "rebalance", "-o", "yaml"}},
		{`"kind": "PlanHistory"`, []string{"plan", "history", "rebalance", "-o", "json"}},
	} {
		stdout, stderr, _ := run(t, server, 80, nil, tc.args...)
		if !strings.Contains(stdout, tc.want) || strings.Contains(stdout, "\x1b") {
			t.Errorf("%v: %q is not in:\n%s%s", tc.args, tc.want, stdout, stderr)
		}
	}
	if _, stderr, code := run(t, server, 80, nil, "status", "-o", "xml"); code != 2 || !strings.Contains(stderr, "json, yaml or name") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
