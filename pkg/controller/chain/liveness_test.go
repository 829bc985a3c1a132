package chain

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestPasses(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	passes := &Passes{Clock: clock}
	want := func(chain string, since time.Time) {
		t.Helper()
		if gotChain, got := passes.Oldest(); gotChain != chain || !got.Equal(since) {
			t.Errorf("the oldest pass is that of %q since %s, want %q since %s", gotChain, got, chain, since)
		}
	}
	want("", time.Time{})

	first := clock.Now()
	endFirst := passes.Begin("a")
	clock.Step(time.Minute)
	second := clock.Now()
	endSecond := passes.Begin("b")
	want("a", first)
	endFirst()
	endFirst() // the second call has no effect
	want("b", second)

	// In a new term the same chain has a new pass.
	clock.Step(time.Minute)
	endThird := passes.Begin("b")
	endSecond()
	want("b", clock.Now())
	endThird()
	want("", time.Time{})

	passes = nil
	passes.Begin("a")()
	want("", time.Time{})
}
