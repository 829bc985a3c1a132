package pod

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// attributes lets a container die with this process. An isolated container also gets namespaces in
// which it is root.
func attributes(isolated bool) *syscall.SysProcAttr {
	made := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		made.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
		made.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		made.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return made
}

// Namespaces returns an error if this machine does not allow the namespaces of a container, and
// says what it refused.
func Namespaces() error {
	for _, program := range []string{"mount", "setpriv", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("containers need the program %s of util-linux: %w", program, err)
		}
	}
	// A temporary folder has no mounts below it. The kernel forbids a bind mount of a folder with
	// mounts.
	dir, err := os.MkdirTemp("", "penstock-namespaces-")
	if err != nil {
		return fmt.Errorf("making a folder to mount: %w", err)
	}
	defer os.RemoveAll(dir)
	try := exec.Command("/bin/sh", "-c", `mount --bind "$1" "$1" && exec unshare --user --map-user=1000 --map-group=0 true`, "try", dir)
	try.SysProcAttr = attributes(true)
	if out, err := try.CombinedOutput(); err != nil {
		return fmt.Errorf("this machine does not let us make user, mount and process namespaces: %w: %s", err, out)
	}
	return nil
}

// Confined returns an error if an isolated process has more rights than its Pod allows:
// capabilities, ways to get capabilities, or a writable root.
func Confined(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("reading what process %d may do: %w", pid, err)
	}
	for _, want := range []string{"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(string(status), want) {
			return fmt.Errorf("process %d does not have %q:\n%s", pid, want, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return fmt.Errorf("reading what process %d sees: %w", pid, err)
	}
	for line := range strings.Lines(string(mounts)) {
		// See proc_pid_mountinfo(5): the fifth field is the path, the sixth field has the options.
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == "/" && !strings.HasPrefix(fields[5], "ro") {
			return fmt.Errorf("process %d could write into its root: %s", pid, line)
		}
	}
	return nil
}
