// Package poll waits for changes that no watch reports, such as new rights in a server, or the
// output of a command.
package poll

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds a wait of a test. It is long, because only a failing test waits that long. On a
// machine under full load a single answer to kubectl takes more than half a minute. The garbage
// collector discovers new types only every 30 seconds.
const Patience = 10 * time.Minute

// TimeoutFlag passes Patience to kubectl commands that wait.
const TimeoutFlag = "--timeout=10m"

// Until calls is until it returns true, and then returns nil. After Patience or the end of ctx it
// returns the error. It starts with short pauses, and later calls is three times a second. A
// command without pauses would take processor time from the process under test.
func Until(ctx context.Context, is func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	pause := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.25, Steps: 100, Cap: 300 * time.Millisecond}
	return pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
}

// Eventually polls until is returns true. After Patience it ends the test and prints the last
// state. It continues after the test's context has ended, so cleanups can use it.
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
