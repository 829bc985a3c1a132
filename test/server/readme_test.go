//go:build integration

package server_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// readmeShell begins the script of TestReadme. The test's control plane and programs replace the
// targets that build them, and --yes replaces a user's answer. The script fails at a target that it
// does not know.
const readmeShell = `set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
make() {
	case "$*" in
	build) ;;
	cluster-up) mkdir -p .local/cluster && cp "${README_KUBECONFIG}" .local/cluster/kubeconfig ;;
	cluster-down) rm -r .local ;;
	*) echo "make $*: no test runs this target" >&2; return 1 ;;
	esac
}
kubectl() {
	printf '$ kubectl %s\n' "$*"
	case "$*" in
	"penstock deploy "*) set -- "$@" --yes ;;
	"penstock rollback "*) set -- "$@" --yes --accept=FieldRemoved ;;
	esac
	command kubectl "$@"
}
`

// TestReadme runs every block "sh" of README.md in order, in one shell. Its folder has only the
// examples. Every line of the README's transcript must be in the output; seconds may differ.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```(sh|console)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	var script, transcript strings.Builder
	script.WriteString(readmeShell)
	for _, block := range blocks {
		if block[1] == "sh" {
			script.WriteString(block[2])
		} else {
			transcript.WriteString(block[2])
		}
	}
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := plane.Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Workloads())
	// The folder also holds the store's socket, whose path must be short.
	folder, err := os.MkdirTemp("", "readme-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Symlink(filepath.Join(root, "artifacts"), filepath.Join(folder, "artifacts")); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(folder, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(penstock.Build(t).Path(), filepath.Join(bin, "penstock")); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "./cmd/kubectl-penstock")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = folder
	shell.Env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"),
		"README_KUBECONFIG="+c.Kubeconfig())
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, penstockLog(folder))
	}
	checkTranscript(t, transcript.String(), string(out))
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) != 2 {
		t.Errorf("the commands left %v, want artifacts and bin: %v", left, err)
	}
}

// checkTranscript compares line by line. Without a terminal, the output has no question. Its
// progress lines begin with the seconds, which a terminal shows at the end.
func checkTranscript(t *testing.T, transcript, out string) {
	t.Helper()
	seconds := regexp.MustCompile(`(?m)^ *\d+s  |, watched for \d+s$`)
	printed := map[string]bool{}
	for line := range strings.SplitSeq(seconds.ReplaceAllString(out, ""), "\n") {
		printed[line] = true
	}
	checked := 0
	for line := range strings.SplitSeq(strings.TrimSpace(transcript), "\n") {
		if line == "…" || strings.HasSuffix(line, " [y/N] y") {
			continue
		}
		checked++
		if !printed[seconds.ReplaceAllString(line, "")] {
			t.Errorf("the transcript has a line that no command prints: %s\n%s", line, out)
		}
	}
	if checked < 4 {
		t.Errorf("the transcript has %d lines", checked)
	}
}

func penstockLog(folder string) string {
	log, err := os.ReadFile(filepath.Join(folder, "penstock.log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-3000):])
}
