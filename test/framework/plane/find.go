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

// nodePrograms are those of a real node, in the order in which they start.
func nodePrograms() []string { return []string{"containerd", "kubelet", "kube-proxy"} }

// holder is the first argument of the process that holds the namespaces of a detached plane.
const holder = "penstock-node"

// foundProcess is a program of a plane in the process table.
type foundProcess struct {
	pid     int
	program string
}

// processesOf finds the programs that run for the plane in dir (a canonical
// name), no matter who started them.
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

// Running returns the names of the programs of the plane in dir, whoever started them.
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

// belongs returns which program of the plane in dir has these arguments, or
// nothing: it must be one of ours with a path below dir among its arguments.
// Somebody's editor or tail -f in the folder is not.
func belongs(args []string, dir string) string {
	program := filepath.Base(args[0])
	below := func(arg string) bool { return strings.Contains(arg, dir+string(filepath.Separator)) }
	if slices.Contains(append(programs(false), programs(true)...), program) && slices.ContainsFunc(args[1:], below) {
		return program
	}
	return ""
}

// killAll ends the programs of the plane in dir, and returns when they have ended with all that ran in
// namespaces of theirs.
func killAll(ctx context.Context, dir string) error {
	var left []foundProcess
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		found, err := processesOf(dir)
		left = append(slices.DeleteFunc(left, func(killed foundProcess) bool {
			return slices.Contains(found, killed) || ended(killed.pid)
		}), found...)
		for _, process := range found {
			// An error means that it ended meanwhile, or is not ours to
			// kill: then it stays in the table, and is reported.
			_ = syscall.Kill(process.pid, syscall.SIGKILL)
		}
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("ending the processes of %s: %w (left: %v)", dir, err, left)
	}
	return nil
}
