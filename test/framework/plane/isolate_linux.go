package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// isolated is the environment variable of a process in its own namespaces. Its value is the name of
// the node's cgroup.
const isolated = "PENSTOCK_NODE"

// cgroupPrefix is the prefix of our cgroups' names. The process id of the waiting process follows,
// or the digest of a detached plane's folder.
const cgroupPrefix = "penstock-node-"

// isolate configures a command to run in new network, mount and PID namespaces, as a real node
// needs. The command is this program, and calls settle first. When it ends, the kernel ends all
// processes in the namespaces and removes network and mounts. forget removes the cgroups.
func isolate(cmd *exec.Cmd, cgroup string) (forget func() error, err error) {
	if err := Isolates(); err != nil {
		return nil, err
	}
	sweepCgroups()
	if err := makeCgroups(cgroup); err != nil {
		_ = removeCgroups(cgroup)
		return nil, err
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, isolated+"="+cgroup)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
	return func() error { return removeCgroups(cgroup) }, nil
}

// Isolates returns nil if a real node can run here. Otherwise the error says what is missing.
func Isolates() error {
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root")
	}
	for _, program := range []string{"ip", "ldconfig"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("a real node needs the command %s: %w", program, err)
		}
	}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	if err := probe.Run(); err != nil {
		return fmt.Errorf("a real node needs namespaces, which this machine forbids: %w", err)
	}
	return nil
}

// settle prepares the new namespaces: it makes mounts private, mounts their own /proc, and enables
// the loopback device.
func settle() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts in the namespace: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return ip("link set lo up")
}

// ip runs the command ip, which changes the network of the namespace.
func ip(line string) error {
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// hierarchies returns the roots of all cgroups: one root in version 2, one root per controller in
// version 1.
func hierarchies() []string {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
		return []string{root}
	}
	files, _ := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

// makeCgroups creates the cgroup for all Pods of a node.
func makeCgroups(name string) error {
	for _, root := range hierarchies() {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		// In version 1 a new cgroup has no processors and no memory nodes.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if content, err := os.ReadFile(filepath.Join(root, file)); err == nil {
				if err := os.WriteFile(filepath.Join(root, name, file), content, 0); err != nil {
					return fmt.Errorf("giving a cgroup processors and memory: %w", err)
				}
			}
		}
	}
	return nil
}

// removeCgroups removes a cgroup and its children. It waits for containers, which can end later
// than the process that started them. The kernel does not remove a cgroup with processes.
func removeCgroups(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	_ = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		var errs []error
		for _, root := range hierarchies() {
			errs = append(errs, removeCgroup(filepath.Join(root, name)))
		}
		err = errors.Join(errs...)
		return !errors.Is(err, syscall.EBUSY), nil
	})
	return err
}

func removeCgroup(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return errors.Join(err, syscall.Rmdir(path))
}

// sweepCgroups removes the cgroups of killed processes. In its own namespaces a process removes
// none, because it does not see the processes outside.
func sweepCgroups() {
	if os.Getenv(isolated) != "" {
		return
	}
	for _, root := range hierarchies() {
		found, _ := filepath.Glob(filepath.Join(root, cgroupPrefix+"*"))
		for _, path := range found {
			pid := strings.TrimPrefix(filepath.Base(path), cgroupPrefix)
			if _, err := strconv.Atoi(pid); err != nil {
				continue
			}
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
				_ = removeCgroup(path)
			}
		}
	}
}

// RunIsolated calls run in its own namespaces: it runs this program again there, with the same
// arguments, input and output, up to this call. It returns the result of run. An error means that
// the namespaces could not be created.
func RunIsolated(run func() int) (status int, err error) {
	if os.Getpid() == 1 && os.Getenv(isolated) != "" {
		if err := settle(); err != nil {
			return 0, err
		}
		return run(), nil
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	forget, err := isolate(cmd, cgroupPrefix+strconv.Itoa(os.Getpid()))
	if err != nil {
		return 0, err
	}
	// The child dies with the thread that forked it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, errors.Join(fmt.Errorf("starting the program again in namespaces: %w", err), forget())
	}
	return cmd.ProcessState.ExitCode(), forget()
}
