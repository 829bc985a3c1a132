//go:build integration

package plane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func tools(t *testing.T) string {
	t.Helper()
	dir, err := Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// folder returns the canonical name of a folder that does not exist.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := canonical(filepath.Join(t.TempDir(), "plane"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// running returns the running programs of the plane in dir.
func running(t *testing.T, dir string) map[string]int {
	t.Helper()
	found, err := processesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, process := range found {
		pids[process.program] = process.pid
	}
	return pids
}

// eventually polls for a change by another process.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func TestStopLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p, err := Start(t.Context(), Options{Dir: dir, Tools: tools(t)})
	if err != nil {
		t.Fatal(err)
	}
	if got := running(t, dir); len(got) != 2 {
		t.Errorf("while it runs: got %v, want etcd and kube-apiserver", got)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if got := running(t, dir); len(got) != 0 {
		t.Errorf("after Stop: %v still run", got)
	}
}

func TestStopReportsWhatEndedBefore(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p, err := Start(t.Context(), Options{Dir: dir, Tools: tools(t)})
	if err != nil {
		t.Fatal(err)
	}
	apiserver := p.processes[1]
	if err := apiserver.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-apiserver.exited
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "kube-apiserver ended by itself") {
		t.Errorf("stopping: got %v, want an error about kube-apiserver", err)
	}
	if got := running(t, dir); len(got) != 0 {
		t.Errorf("after Stop: %v still run", got)
	}
}

// heldIn is the environment variable that makes TestHeldPlane the process to be killed.
const heldIn = "PENSTOCK_TEST_HELD_PLANE"

// TestHeldPlane starts a plane and holds it until the process is killed.
func TestHeldPlane(t *testing.T) {
	dir := os.Getenv(heldIn)
	if dir == "" {
		t.Skip("runs only as a child of TestKilledOwnerLeavesNoProcess")
	}
	if _, err := Start(t.Context(), Options{Dir: dir, Tools: tools(t)}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("holding")
	select {}
}

func TestKilledOwnerLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHeldPlane$")
	owner.Env = append(os.Environ(), heldIn+"="+dir)
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child to start a plane", func() bool { return len(running(t, dir)) == 2 })
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
	eventually(t, "the plane to end with its owner", func() bool { return len(running(t, dir)) == 0 })
}

func TestStartRefusesUsedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("Start in a used folder: got %v, want an error that says so", err)
	}
}
