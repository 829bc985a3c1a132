//go:build integration

package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// TestDown: what make cluster-up NODE=real starts is reached from outside of its namespaces, runs
// containers, and make cluster-down leaves nothing of it.
func TestDown(t *testing.T) {
	before := traces(t)
	top, err := os.MkdirTemp("", "penstock-node-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	dir := filepath.Join(top, "cluster")
	programs, err := plane.Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	options := plane.Options{Dir: dir, Tools: programs, Node: tools}
	up, err := plane.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Down(context.Background(), dir) })
	kubectl := func(args ...string) string {
		out, err := up.Kubectl(t.Context(), nil, args...)
		if err != nil || out.ExitCode != 0 {
			t.Fatalf("kubectl %v: %v %s", args, err, out.Stderr)
		}
		return out.Stdout
	}
	kubectl("run", "alive", "--image=penstock.local/pause:1", "--restart=Never")
	kubectl("wait", "--for=condition=Ready", "pod/alive", "--timeout=5m")
	if again, err := plane.Up(t.Context(), options); err != nil || again.Kubeconfig() != up.Kubeconfig() {
		t.Errorf("a second Up found %v, %v", again, err)
	}
	options.Node = ""
	if _, err := plane.Up(t.Context(), options); err == nil || !strings.Contains(err.Error(), "with the real node of") {
		t.Errorf("Up with a simulated node beside a real one: %v", err)
	}
	if during := traces(t); cmp.Equal(before, during) {
		t.Fatalf("a node with a Pod leaves no traces: the test sees nothing: %s", during)
	}

	if err := up.Stop(); err != nil {
		t.Errorf("ending kubectl: %v", err)
	}
	if err := plane.Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, traces(t)); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 0 {
		t.Errorf("files left behind: %v %v", left, err)
	}
}

// traces are what a node could leave: processes, cgroups, mounts and network.
func traces(t *testing.T) map[string]string {
	t.Helper()
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	cgroups, err := filepath.Glob("/sys/fs/cgroup/*/penstock-node-d*")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	var processes []string
	table, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range table {
		// A process that has ended has no command line until its parent has seen that.
		if line, err := os.ReadFile(file); err == nil && len(line) > 0 {
			processes = append(processes, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return map[string]string{
		"cgroups":   strings.Join(cgroups, " "),
		"mounts":    string(mounts),
		"processes": strings.Join(processes, "\n"),
		"network":   run("ip", "-oneline", "address") + run("ip", "route"),
	}
}
