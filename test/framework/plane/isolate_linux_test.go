//go:build integration

package plane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRemoveCgroups: a process that ends a moment later does not keep its cgroup.
func TestRemoveCgroups(t *testing.T) {
	name := fmt.Sprintf("%stest-%d", cgroupPrefix, os.Getpid())
	if err := makeCgroups(name); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() { _ = removeCgroups(name) })
	process := exec.Command("sleep", "0.5")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	path := filepath.Join(hierarchies()[0], name)
	if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), fmt.Appendln(nil, process.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroup(path); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("the kernel removes a cgroup with a process: %v", err)
	}
	if err := removeCgroups(name); err != nil {
		t.Errorf("removing a cgroup whose process ends: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
