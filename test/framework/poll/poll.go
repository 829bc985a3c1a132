// Package poll waits for what no watch tells: that a server has learned of rights, or what
// a command prints.
package poll

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds a wait of a test: what takes longer does not happen. It is long, because
// only a test that fails waits for so long: on a machine under full load a single answer to
// kubectl takes more than half a minute, and the garbage collector looks twice a minute for
// types that are new to it.
const Patience = 10 * time.Minute

// TimeoutFlag is Patience for the commands of kubectl that wait.
const TimeoutFlag = "--timeout=10m"

// Until asks again and again until the answer is yes, and returns nil then, or until
// Patience or the context ends, and returns its error. It asks soon at first, and later
// three times in a second: a command that is run without a pause takes the processors
// from what it waits for.
func Until(ctx context.Context, is func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	pause := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.25, Steps: 100, Cap: 300 * time.Millisecond}
	return pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
}

// Eventually polls what nobody tells about, and ends the test with what it saw last when that
// does not become so within Patience. It goes on when the context of the test has ended: it is
// also for what ends a test.
func Eventually(t testing.TB, what string, is func() (ok bool, now string)) {
	t.Helper()
	var now string
	err := Until(context.Background(), func(context.Context) (ok bool) {
		ok, now = is()
		return ok
	})
	if err != nil {
		t.Fatalf("waited %s for %s: %s", Patience, what, now)
	}
}
