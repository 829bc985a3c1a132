package plane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// programs returns the names of the programs of a plane with workloads, with a simulated or a real
// node.
func programs(real bool) []string {
	control := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if real {
		return append(control, append(nodePrograms(), holder)...)
	}
	return append(control, "kwok")
}

// nodePrograms returns the programs of a real node, in the order of their start.
func nodePrograms() []string { return []string{"containerd", "kubelet", "kube-proxy"} }

// holder is the first argument of the process that holds the namespaces of a detached plane.
const holder = "penstock-node"

// foundProcess is a program of a plane in the process table.
type foundProcess struct {
	pid     int
	program string
}

// processesOf finds the programs of the plane in dir (a canonical name), no matter which process
// started them.
func processesOf(dir string) ([]foundProcess, error) {
	table, err := commandLines()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	var found []foundProcess
	for pid, args := range table {
		if program := belongs(args, dir); program != "" {
			found = append(found, foundProcess{pid: pid, program: program})
		}
	}
	return found, nil
}

// Running returns the names of the running programs of the plane in dir, no matter which process
// started them.
func Running(dir string) ([]string, error) {
	dir, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	found, err := processesOf(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = found[i].program
	}
	return names, nil
}

// belongs returns the name of the plane's program with these arguments, or "". The program must be
// one of ours and have a path below dir among its arguments. A user's editor or tail -f in the
// folder does not match.
func belongs(args []string, dir string) string {
	program := filepath.Base(args[0])
	below := func(arg string) bool { return strings.Contains(arg, dir+string(filepath.Separator)) }
	if slices.Contains(append(programs(false), programs(true)...), program) && slices.ContainsFunc(args[1:], below) {
		return program
	}
	return ""
}

// killAll kills the programs of the plane in dir. It waits until they and all processes in their
// namespaces have ended.
func killAll(ctx context.Context, dir string) error {
	var left []foundProcess
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		found, err := processesOf(dir)
		left = append(slices.DeleteFunc(left, func(killed foundProcess) bool {
			return slices.Contains(found, killed) || ended(killed.pid)
		}), found...)
		for _, process := range found {
			// Kill fails if the process has ended or belongs to another user. In the second case
			// the process stays in the table and is reported.
			_ = syscall.Kill(process.pid, syscall.SIGKILL)
		}
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("ending the processes of %s: %w (left: %v)", dir, err, left)
	}
	return nil
}
