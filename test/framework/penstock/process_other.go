//go:build !linux

package penstock

import "syscall"

// dieWithParent is only possible on Linux.
func dieWithParent() *syscall.SysProcAttr { return nil }
