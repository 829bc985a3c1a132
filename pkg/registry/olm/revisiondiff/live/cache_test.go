package live

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnswersAreKept: an answer is cached for a short time, for the same question of the same user.
func TestAnswersAreKept(t *testing.T) {
	s := newSetting("a")
	s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*"}
	l := s.live()
	steps := []struct {
		reason string
		before func()
		user   string
		asked  int
		age    time.Duration
	}{
		{reason: "first", user: "alice", asked: 1},
		{reason: "again", user: "alice", asked: 1},
		{reason: "somebody else", user: "bob", asked: 2},
		{reason: "the inventory changed", user: "alice", before: func() { s.version++ }, asked: 3},
		{reason: "fresh still", user: "alice", before: func() { s.clock.SetTime(s.clock.Now().Add(freshFor - 1)) }, asked: 3, age: freshFor - 1},
		{reason: "stale", user: "alice", before: func() { s.clock.SetTime(s.clock.Now().Add(1)) }, asked: 4},
		{reason: "less is shown", user: "alice", before: func() { s.manifests = nil }, asked: 5},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		preview, err := s.ask(t, l, step.user)
		if err != nil {
			t.Fatal(err)
		}
		if preview.Age != step.age {
			t.Errorf("%s: it is %s old, want %s", step.reason, preview.Age, step.age)
		}
		if s.engine.asked != step.asked {
			t.Fatalf("%s: the engine was asked %d times, want %d", step.reason, s.engine.asked, step.asked)
		}
	}
	for n := range 3 * maxAnswers {
		if _, err := s.ask(t, l, fmt.Sprint("user-", n)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(l.cache.answers); kept != maxAnswers {
		t.Errorf("%d answers are kept, want %d", kept, maxAnswers)
	}
	asked := s.engine.asked
	if _, err := s.ask(t, l, fmt.Sprint("user-", 3*maxAnswers-1)); err != nil || s.engine.asked != asked {
		t.Errorf("the newest answer was dropped (error %v)", err)
	}
}

// TestAskedOnce: a request that waits for an equal request gets the same answer.
func TestAskedOnce(t *testing.T) {
	var names []string
	for n := range objectsAtOnce {
		names = append(names, fmt.Sprint("object-", n))
	}
	s := newSetting(names...)
	synctest.Test(t, func(t *testing.T) {
		l := s.live()
		leave := mustEnter(t, l.queue, objectsAtOnce)
		answers := make(chan error)
		for range 3 {
			go func() {
				_, err := s.ask(t, l, "alice")
				answers <- err
			}()
		}
		synctest.Wait()
		leave()
		for range 3 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
	if s.engine.asked != 1 {
		t.Errorf("the engine was asked %d times by three who asked the same", s.engine.asked)
	}
}

// TestFailuresAreNotKept: after a failure the next request asks the cluster again.
func TestFailuresAreNotKept(t *testing.T) {
	s := newSetting("a")
	s.engine.err = errors.New("connection refused")
	l := s.live()
	if _, err := s.ask(t, l, "alice"); err == nil {
		t.Fatal("no error")
	}
	s.engine.err = nil
	if _, err := s.ask(t, l, "alice"); err != nil {
		t.Errorf("an error was kept: %v", err)
	}
}
