//go:build !linux

package main

import "syscall"

// attributes puts the server out of reach of the terminal's signals.
func attributes(detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detached, Setpgid: !detached}
}
