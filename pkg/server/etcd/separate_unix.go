//go:build unix

package etcd

import (
	"os/exec"
	"syscall"
)

// separate keeps what a terminal sends to this process, such as an interrupt, from
// another one: it is ended when everybody who uses it has.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
