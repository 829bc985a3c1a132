package app

import (
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/controller/chain"
)

func TestHanging(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	running := &chain.Passes{Clock: clock}
	check := hanging(running, clock)
	if err := check(); err != nil {
		t.Errorf("nothing runs, and it hangs: %v", err)
	}
	end := running.Begin("argocd")
	clock.Step(longestPass)
	if err := check(); err != nil {
		t.Errorf("a slow pass is taken for one that hangs: %v", err)
	}
	clock.Step(time.Second)
	if err := check(); err == nil || !strings.Contains(err.Error(), "argocd") || !strings.Contains(err.Error(), "10m1s") {
		t.Errorf("a pass hangs, and the check says %v", err)
	}
	end()
	if err := check(); err != nil {
		t.Errorf("it ended, and hangs still: %v", err)
	}
}
