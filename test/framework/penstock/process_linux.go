package penstock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// dieWithParent makes the kernel kill the program when the test process ends,
// however it does: a test that runs into its timeout cleans nothing up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Etcd is the id of the process that runs the embedded etcd, 0 while there is none.
func (s *Server) Etcd(t testing.TB) int {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Pid()))
	if err != nil {
		t.Fatalf("penstock: looking for the processes that it has started: %v", err)
	}
	for _, thread := range threads {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", s.Pid(), thread.Name()))
		if err != nil {
			continue // it has ended
		}
		for _, word := range bytes.Fields(content) {
			if pid, err := strconv.Atoi(string(word)); err == nil {
				return pid
			}
		}
	}
	return 0
}
