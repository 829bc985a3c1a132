//go:build !linux

package plane

import "syscall"

// attributes protects a program from the terminal's signals. Without Linux's parent-death signal a
// killed caller leaves its programs running. Down and make cluster-down find them by their folder.
func attributes(detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detached, Setpgid: !detached}
}
