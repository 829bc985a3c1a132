package plane

import "syscall"

// attributes puts a program out of reach of the terminal's signals, and lets it
// die with this process unless it is to outlive it.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
