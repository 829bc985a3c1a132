//go:build unix

package etcd

import (
	"os/exec"
	"syscall"
)

// separate keeps signals of the terminal, such as an interrupt, from the child process. The parent
// ends it when nothing uses it any more.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
