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

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestStop: a stopped node leaves nothing in its namespaces. Another node can start there.
func TestStop(t *testing.T) {
	before := traces(t, "")
	for range 2 {
		t.Run("Node", func(t *testing.T) {
			c := cluster.Start(t, cluster.Node(tools))
			c.MustKubectl("run", "alive", "--image=penstock.local/pause:1", "--restart=Never")
			c.MustKubectl("wait", "--for=condition=Ready", "pod/alive", poll.TimeoutFlag)
			if during := traces(t, ""); cmp.Equal(before, during) {
				t.Fatalf("a node with a Pod leaves no traces: the test sees nothing: %s", during)
			}
		})
		if diff := cmp.Diff(before, traces(t, "")); diff != "" {
			t.Fatalf("the node left traces (-before +after):\n%s", diff)
		}
	}
}

// TestDown: the cluster of make cluster-up NODE=real is reachable from outside its namespaces, and
// runs imported images. make cluster-down leaves nothing behind.
func TestDown(t *testing.T) {
	top, err := os.MkdirTemp("", "penstock-node-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	if top, err = filepath.EvalSymlinks(top); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "cluster")
	before := traces(t, dir)
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
	image, err := plane.ProgramImage(filepath.Join(tools, "pause"))
	if err != nil {
		t.Fatal(err)
	}
	open, err := plane.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := open.Import(t.Context(), "registry.example.com/loaded:1", image); err != nil {
		t.Fatal(err)
	}
	kubectl("run", "alive", "--image=registry.example.com/loaded:1", "--restart=Never")
	kubectl("wait", "--for=condition=Ready", "pod/alive", "--timeout=5m")
	if again, err := plane.Up(t.Context(), options); err != nil || again.Kubeconfig() != up.Kubeconfig() {
		t.Errorf("a second Up found %v, %v", again, err)
	}
	options.Node = ""
	if _, err := plane.Up(t.Context(), options); err == nil || !strings.Contains(err.Error(), "with the real node of") {
		t.Errorf("Up with a simulated node while a real one runs: %v", err)
	}
	if during := traces(t, dir); cmp.Equal(before, during) {
		t.Fatalf("a node with a Pod leaves no traces: the test sees nothing: %s", during)
	}

	if err := up.Stop(); err != nil {
		t.Errorf("ending kubectl: %v", err)
	}
	if err := plane.Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, traces(t, dir)); diff != "" {
		t.Errorf("the node left traces (-before +after):\n%s", diff)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 0 {
		t.Errorf("files left behind: %v %v", left, err)
	}
}

// traces returns the remaining processes, mounts, networks and cgroups of the detached node in dir.
// The cgroups of this process's own node do not count.
func traces(t *testing.T, dir string) map[string]string {
	t.Helper()
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	var cgroups []string
	for _, name := range []string{plane.CgroupOf(dir), os.Getenv("PENSTOCK_NODE")} {
		for _, version := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			found, err := filepath.Glob(version + name)
			if err != nil {
				t.Fatal(err)
			}
			cgroups = append(cgroups, found...)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	table, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var processes []string
	for _, file := range table {
		// A terminated process remains as a zombie until its parent waits for it.
		stat, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			processes = append(processes, strings.Join(strings.Fields(string(stat))[:2], " "))
		}
	}
	return map[string]string{
		"cgroups":   strings.Join(cgroups, " "),
		"mounts":    string(mounts),
		"processes": strings.Join(processes, "\n"),
		"network":   run("ip", "-oneline", "address") + run("ip", "route"),
	}
}
