package replicas

import (
	"context"
	"fmt"
	"testing"
)

// Stop ends the process of a replica, counted from 0, as an administrator would. A leader releases
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

// Run starts an ended replica, with further flags, and returns when it is ready.
func (s *Set) Run(t testing.TB, index int, flags ...string) {
	t.Helper()
	r := s.replicas[index]
	r.own = flags
	s.launch(t, r)
}

// AwaitLeader returns when a replica leads.
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

// Page reads a page of a replica, and not through the host: its metrics.
func (s *Set) Page(t testing.TB, index int, path string) string {
	t.Helper()
	return s.replicas[index].Fetch(t, s.Config(), path)
}

// Await returns when the log of the process of a replica has the text.
func (s *Set) Await(t testing.TB, index int, text string) {
	t.Helper()
	s.replicas[index].Await(t, text)
}

// Log returns the output of the process of a replica so far.
func (s *Set) Log(index int) string { return s.replicas[index].Log() }

// Source is the address that the host sees of a replica, empty where all have the same.
func (s *Set) Source(index int) string { return s.replicas[index].source }
