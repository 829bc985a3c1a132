package penstock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// dieWithParent lets the kernel kill the program when the test process ends in any way. A test that
// exceeds its timeout runs no cleanups.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Etcd returns the id of the process that runs the embedded etcd, or 0.
func (s *Server) Etcd(t testing.TB) int {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Pid()))
	if err != nil {
		t.Fatalf("penstock: finding the processes that it has started: %v", err)
	}
	for _, thread := range threads {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", s.Pid(), thread.Name()))
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range bytes.Fields(content) {
			if pid, err := strconv.Atoi(string(word)); err == nil {
				return pid
			}
		}
	}
	return 0
}

// PeakMemory returns a function that returns the growth of the process's peak memory since now, in
// bytes.
func (s *Server) PeakMemory(t testing.TB) (grown func() int64) {
	t.Helper()
	// See proc_pid_clear_refs(5): 5 resets the peak.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Pid()), []byte("5"), 0); err != nil {
		t.Fatalf("penstock: resetting the peak of its memory: %v", err)
	}
	before := s.peak(t)
	return func() int64 {
		t.Helper()
		return s.peak(t) - before
	}
}

func (s *Server) peak(t testing.TB) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		t.Fatalf("penstock: reading its memory: %v", err)
	}
	for line := range strings.Lines(string(content)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	t.Fatalf("penstock: its status does not tell its memory:\n%s", content)
	return 0
}
