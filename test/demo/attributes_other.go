//go:build !linux

package main

import "syscall"

// attributes protects the server from the terminal's signals.
func attributes(detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detached, Setpgid: !detached}
}
