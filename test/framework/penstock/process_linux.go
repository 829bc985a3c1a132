package penstock

import "syscall"

// dieWithParent makes the kernel kill the program when the test process ends,
// however it does: a test that runs into its timeout cleans nothing up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
