package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/authz"
)

// answers answers access reviews like a host, and counts them.
type answers struct {
	may   bool
	err   error
	asked int
}

func (a *answers) May(context.Context, user.Info, authz.Right) (bool, error) {
	a.asked++
	return a.may, a.err
}

// TestRecentRights: "allowed" is cached for a while, for the same user and right. "Denied" and
// errors are not cached.
func TestRecentRights(t *testing.T) {
	create, drop := authz.Right{Verb: "create", Resource: "lamps"}, authz.Right{Verb: "delete", Resource: "lamps"}
	alice, grouped := &user.DefaultInfo{Name: "alice"}, &user.DefaultInfo{Name: "alice", Groups: []string{"a"}}
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	host := &answers{}
	recent := newRecentRights(host, clock)
	ask := func(reason string, who user.Info, asked authz.Right, may bool, questions int) {
		t.Helper()
		host.asked = 0
		got, err := recent.May(t.Context(), who, asked)
		if got != may || (err != nil) != (host.err != nil) || host.asked != questions {
			t.Errorf("%s: it says %v (%v) after %d questions, want %v after %d", reason, got, err, host.asked, may, questions)
		}
	}
	ask("it is denied", alice, create, false, 1)
	host.err = errors.New("no answer")
	ask("there is no answer", alice, create, false, 1)
	host.may, host.err = true, nil
	ask("it was granted meanwhile", alice, create, true, 1)
	host.may = false
	ask("it was allowed a moment ago", alice, create, true, 0)
	ask("another right", alice, drop, false, 1)
	ask("another person", grouped, create, false, 1)
	clock.Step(rememberedFor + time.Second)
	ask("that was long ago", alice, create, false, 1)
}
