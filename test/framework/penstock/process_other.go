//go:build !linux

package penstock

import (
	"syscall"
	"testing"
)

// dieWithParent does nothing: parent-death signals exist only on Linux.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Etcd skips the test: it needs Linux.
func (s *Server) Etcd(t testing.TB) int {
	t.Skip("processes are not looked for here")
	return 0
}

// PeakMemory skips the test: it needs Linux.
func (s *Server) PeakMemory(t testing.TB) (grown func() int64) {
	t.Skip("the memory of processes is not known here")
	return nil
}
