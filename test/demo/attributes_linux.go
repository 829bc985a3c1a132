package main

import "syscall"

// attributes protects the server from the terminal's signals. Unless detached, the server is killed
// when this process ends.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
