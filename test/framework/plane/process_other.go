//go:build !linux

package plane

import "syscall"

// attributes puts a program out of reach of the terminal's signals. Without
// Linux's parent-death signal a caller that is killed leaves its programs
// behind; Down and make cluster-down find them by their folder.
func attributes(detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detached, Setpgid: !detached}
}
