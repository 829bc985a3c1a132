package privilege

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestFailsClosed: a check without an answer refuses the request, with the reason.
func TestFailsClosed(t *testing.T) {
	web := deployment(t, "web")
	down := errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		act       func(*situation) error
		says      string
	}{
		"BypassUnanswered": {
			reason:    "not even the first question",
			situation: func(w *situation) { w.dead = down }, says: "whether you may bypass privilegechecks.policy.penstock.dev lighthouse: dial tcp 10.0.0.1:443: connect: connection refused",
		},
		"RightsUnanswered": {
			reason:    "the others",
			situation: func(w *situation) { w.failure = down }, says: "connection refused",
		},
		"Discovery": {
			reason:    "an API that does not answer is not one that is not there",
			situation: func(w *situation) { w.noDiscovery = down }, says: "asking the cluster which kinds it has in apps/v1: dial tcp",
		},
		"NoManifests": {
			reason:    "an endpoint that forgot to say what is in a revision",
			situation: func(w *situation) { w.may("lighthouse", rule("*", "*", "*")) },
			act: func(w *situation) error {
				return w.plugin().Validate(w.t.Context(), attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "the endpoint did not pass them on",
		},
		"OtherManifests": {
			reason:    "other content than the revision names",
			situation: func(w *situation) { w.may("lighthouse", rule("*", "*", "*")) },
			act: func(w *situation) error {
				ctx := request.WithManifests(w.t.Context(), []manifest.Object{deployment(t, "other")})
				return w.plugin().Validate(ctx, attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "Deployment.apps lighthouse/web is not among them",
		},
		"LostContent": {
			reason:    "a revision whose manifests cannot be read",
			situation: func(*situation) {},
			act:       func(w *situation) error { r := rev(1, web); return w.updates(r.as("Paused"), r) },
			says:      "lighthouse-1 is not stored",
		},
		"Slow": {
			reason:    "a cluster that does not answer in time",
			situation: func(w *situation) { w.slow = time.Hour },
			act: func(w *situation) error {
				p := w.plugin()
				p.deps.Timeout = time.Millisecond
				return p.Validate(request.WithManifests(w.t.Context(), []manifest.Object{web}), attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "your rights could not be checked within 1ms",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			tc.situation(w)
			if tc.act == nil {
				tc.act = func(w *situation) error { return w.creates(rev(1, web)) }
			}
			want(t, tc.reason, tc.act(w), unavailable, tc.says)
		})
	}
}

// TestQuestions: every right is checked once, with bounded concurrency.
func TestQuestions(t *testing.T) {
	w := newSituation(t).may("lighthouse", rule("create,patch,delete", "", "configmaps")).has(1, manyConfigMaps(t, 99)...)
	w.slow = time.Millisecond
	if err := w.creates(rev(2, manyConfigMaps(t, 60)...)); err != nil {
		t.Fatal(err)
	}
	if got, want := len(w.asked), 1+2*60+39; got != want {
		t.Errorf("%d questions, want %d: the bypass, two for each of 60 objects, one for each of 39 that go", got, want)
	}
	if w.most > requestConcurrency {
		t.Errorf("%d questions were open at a time, %d are allowed", w.most, requestConcurrency)
	}
	admin := newSituation(t).may("", rule("*", "*", "*"))
	if err := admin.creates(rev(1, manyConfigMaps(t, 60)...)); err != nil {
		t.Fatal(err)
	}
	if got := len(admin.asked); got != 1 {
		t.Errorf("%d questions about who may bypass the check, want 1", got)
	}
}

// TestFailureEndsQuestions: the first failure ends the remaining checks.
func TestFailureEndsQuestions(t *testing.T) {
	w := newSituation(t)
	w.failure = errors.New("down")
	want(t, "down", w.creates(rev(1, manyConfigMaps(t, 99)...)), unavailable)
	if len(w.asked) > 1+2*requestConcurrency {
		t.Errorf("%d questions were asked of a cluster that is down", len(w.asked))
	}
}

// TestRefusedSoon: a user without rights is refused after a few checks, even for a large request,
// and sees the first missing rights.
func TestRefusedSoon(t *testing.T) {
	const most = 30
	groups := func(n int) []manifest.Object {
		var objects []manifest.Object
		for i := range n {
			objects = append(objects, object(t, fmt.Sprintf("g%d.example.com/v1", i), "Thing", "lighthouse", fmt.Sprint("t", i), nil))
		}
		return objects
	}
	roles := func(n int) []manifest.Object {
		var objects []manifest.Object
		for i := range n {
			objects = append(objects, clusterRole(t, fmt.Sprint("r", i), rule("get,list", "", "secrets", fmt.Sprint("s", i))))
		}
		return objects
	}
	for name, tc := range map[string]struct {
		reason    string
		situation func(*situation) error
		// more is the number of additional checks, for rights that the user has.
		more, named int
	}{
		"ConfigMaps": {reason: "objects of one kind", named: 10, situation: func(w *situation) error { return w.creates(rev(1, manyConfigMaps(t, 4000)...)) }},
		"Groups":     {reason: "each in a group of its own, about which discovery is asked", named: 9, situation: func(w *situation) error { return w.creates(rev(1, groups(4000)...)) }},
		"Roles":      {reason: "roles", named: 10, situation: func(w *situation) error { return w.creates(rev(1, roles(4000)...)) }},
		"Escalation": {reason: "roles that they may write, and what these hand on they cannot have", named: 5, more: 2 * 1000, situation: func(w *situation) error {
			return w.may("", writesRBAC()).creates(rev(1, roles(1000)...))
		}},
		"Prune": {reason: "what goes", named: 10, situation: func(w *situation) error { return w.has(1, manyConfigMaps(t, 4000)...).creates(rev(2)) }},
		"Archive": {reason: "what is given up", named: 10, situation: func(w *situation) error {
			r := rev(1, manyConfigMaps(t, 4000)...)
			return w.holds(r).updates(r, r.as("Archived"))
		}},
		"Last": {reason: "one that is missing at the end is found", named: 1, more: 2*99 + 2, situation: func(w *situation) error {
			return w.may("lighthouse", rule("create,patch", "", "configmaps")).creates(rev(1, append(manyConfigMaps(t, 99), deployment(t, "web"))...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			err := tc.situation(w)
			want(t, tc.reason, err, forbidden, "alice cannot ")
			if asked := len(w.asked) + w.discoveries + w.lookups; asked > most+tc.more {
				t.Errorf("%s: %d access reviews, %d of discovery and %d looks at roles, want %d at most: %.300v", tc.reason, len(w.asked), w.discoveries, w.lookups, most+tc.more, err)
			}
			if list := strings.Split(strings.Split(fmt.Sprint(err), "cannot ")[1], "; "); len(list) < tc.named {
				t.Errorf("%s: %d are named, want %d: %v", tc.reason, len(list), tc.named, err)
			}
		})
	}
}

// TestTurns: requests of a user wait for earlier requests of the same user only.
func TestTurns(t *testing.T) { synctest.Test(t, turnsOfUsers) }

func turnsOfUsers(t *testing.T) {
	all := turns{users: map[string]*turn{}}
	var ends []func()
	for range userConcurrency {
		done, err := all.take(t.Context(), "mallory")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := all.take(gone, "mallory"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left still waits: %v", err)
	}
	waiting := make(chan error, userWaiting)
	for range userWaiting {
		go func() {
			done, err := all.take(t.Context(), "mallory")
			if err == nil {
				done()
			}
			waiting <- err
		}()
	}
	synctest.Wait()
	if _, err := all.enter("mallory"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one more request of a user who has as many as may wait: %v", err)
	}
	done, err := all.take(t.Context(), "alice")
	if err != nil {
		t.Errorf("alice waits for mallory: %v", err)
	}
	done()
	for _, end := range ends {
		end()
	}
	for range userWaiting {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
	if len(all.users) > 0 {
		t.Errorf("%d users are remembered without a request", len(all.users))
	}
}
