package powers

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// What cannot be found out is refused, and the answer says why.
func TestFailsClosed(t *testing.T) {
	web := deployment(t, "web")
	down := errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
	cases := map[string]struct {
		reason string
		world  func(*world)
		act    func(*world) error
		says   string
	}{
		"BypassUnanswered": {
			reason: "not even the first question",
			world:  func(w *world) { w.dead = down }, says: "whether you may bypass privilegechecks.policy.penstock.dev lighthouse: dial tcp 10.0.0.1:443: connect: connection refused",
		},
		"RightsUnanswered": {
			reason: "the others",
			world:  func(w *world) { w.failure = down }, says: "connection refused",
		},
		"Discovery": {
			reason: "an API that does not answer is not one that is not there",
			world:  func(w *world) { w.noDiscovery = down }, says: "asking the cluster which kinds it has in apps/v1: dial tcp",
		},
		"NoManifests": {
			reason: "an endpoint that forgot to say what is in a revision",
			world:  func(w *world) { w.may("lighthouse", rule("*", "*", "*")) },
			act: func(w *world) error {
				return w.plugin().Validate(w.t.Context(), attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "the endpoint has not said",
		},
		"OtherManifests": {
			reason: "other content than the revision names",
			world:  func(w *world) { w.may("lighthouse", rule("*", "*", "*")) },
			act: func(w *world) error {
				ctx := request.WithManifests(w.t.Context(), []manifest.Object{deployment(t, "other")})
				return w.plugin().Validate(ctx, attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "Deployment.apps lighthouse/web is not among them",
		},
		"LostContent": {
			reason: "a revision whose manifests cannot be read",
			world:  func(*world) {},
			act:    func(w *world) error { r := rev(1, web); return w.updates(r.as("Paused"), r) },
			says:   "lighthouse-1 is not stored",
		},
		"Slow": {
			reason: "a cluster that does not answer in time",
			world:  func(w *world) { w.slow = time.Hour },
			act: func(w *world) error {
				p := w.plugin()
				p.deps.Timeout = time.Millisecond
				return p.Validate(request.WithManifests(w.t.Context(), []manifest.Object{web}), attributes(admission.Create, rev(1, web), nil, ""), nil)
			},
			says: "was not found out within 1ms",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.world(w)
			if tc.act == nil {
				tc.act = func(w *world) error { return w.creates(rev(1, web)) }
			}
			want(t, tc.reason, tc.act(w), unavailable, tc.says)
		})
	}
}

// Every question is asked once, a bounded number at a time.
func TestQuestions(t *testing.T) {
	w := newWorld(t).may("lighthouse", rule("create,patch,delete", "", "configmaps")).has(1, manyConfigMaps(t, 99)...)
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
	admin := newWorld(t).may("", rule("*", "*", "*"))
	if err := admin.creates(rev(1, manyConfigMaps(t, 60)...)); err != nil {
		t.Fatal(err)
	}
	if got := len(admin.asked); got != 1 {
		t.Errorf("%d questions about who may bypass the check, want 1", got)
	}
}

// The first failure ends the others.
func TestFailureEndsQuestions(t *testing.T) {
	w := newWorld(t)
	w.failure = errors.New("down")
	want(t, "down", w.creates(rev(1, manyConfigMaps(t, 99)...)), unavailable)
	if len(w.asked) > 1+2*requestConcurrency {
		t.Errorf("%d questions were asked of a cluster that is down", len(w.asked))
	}
}
