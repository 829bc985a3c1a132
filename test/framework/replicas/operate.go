package replicas

import (
	"context"
	"fmt"
	"testing"
)

// Stop stops the process of a replica, counted from 0, as an administrator would. A leader releases
// its lease at once.
func (s *Set) Stop(t testing.TB, index int) {
	t.Helper()
	s.replicas[index].Stop(t)
}

// Kill kills the process of a replica, like the loss of its machine. A leader's lease must expire
// first.
func (s *Set) Kill(t testing.TB, index int) {
	t.Helper()
	s.replicas[index].Kill(t)
}

// Run starts an ended replica, with additional flags, and returns when it is ready.
func (s *Set) Run(t testing.TB, index int, flags ...string) {
	t.Helper()
	r := s.replicas[index]
	r.own = flags
	s.launch(t, r)
}

// AwaitLeader waits until a replica leads.
func (s *Set) AwaitLeader(t testing.TB, index int) {
	t.Helper()
	s.eventually(t, fmt.Sprintf("%s to lead", s.replicas[index]), func(ctx context.Context) error {
		holder, err := s.holder(ctx)
		if err == nil && holder != s.replicas[index] {
			err = fmt.Errorf("the lease is held by %v", holder)
		}
		return err
	})
}

// Page reads a path, such as metrics, directly from a replica and not through the host.
func (s *Set) Page(t testing.TB, index int, path string) string {
	t.Helper()
	return s.replicas[index].Fetch(t, s.Config(), path)
}

// Await waits until the log of a replica's process contains the text.
func (s *Set) Await(t testing.TB, index int, text string) {
	t.Helper()
	s.replicas[index].Await(t, text)
}

// Log returns the output of a replica's process so far.
func (s *Set) Log(index int) string { return s.replicas[index].Log() }

// Source returns the source address of a replica's requests to the host. It is empty on systems
// where all replicas have the same address.
func (s *Set) Source(index int) string { return s.replicas[index].source }
