//go:build integration

package e2e_test

import (
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// ours selects requests of the engines for rollouts and plans, with their watches and events.
func ours(r plane.Request) bool {
	if !byPenstock(r) {
		return false
	}
	for _, part := range []string{" rollout", " watch", " events", " plans", " plan-targets", " plan-facts", " approvers"} {
		if strings.HasSuffix(r.UserAgent, part) {
			return true
		}
	}
	return false
}

func byPenstock(r plane.Request) bool { return strings.HasPrefix(r.UserAgent, "penstock/") }

// stored selects requests that kube-apiserver stores: no reviews and no dry-runs.
func stored(r plane.Request) bool {
	return !strings.HasSuffix(r.Resource, "reviews") && !strings.Contains(r.URI, "dryRun=")
}

// ofMark selects writes of the store's high-water mark, which follow some seconds after the last
// write to the store.
func ofMark(r plane.Request) bool {
	return byPenstock(r) && strings.HasSuffix(r.UserAgent, "/identity")
}

// quiet waits until the engines have sent no request for three seconds.
func (w sharedPlane) quiet() {
	w.t.Helper()
	for range 20 {
		mark := w.Audit().Mark()
		timer := time.NewTimer(3 * time.Second)
		<-timer.C
		if len(w.Audit().Since(mark, ours, plane.Not(plane.ByVerb("watch")))) == 0 {
			return
		}
	}
	w.t.Fatal("there is no end of requests")
}

// idle: rolled-out objects cost only open watches.
func idle(w sharedPlane) {
	const silence = 20 * time.Second
	ns := w.namespace("idle")
	// kube-apiserver spells these quantities differently.
	server := deployment(ns, "server", "example.com/server:v1")
	container := server["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"requests": map[string]any{"cpu": "0.5", "memory": "1024Mi"}}
	w.roll(revision("idle", 1).Phase("all", configMap(ns, "settings", "x=1"), secret(ns, "password", "hunter2"), server))
	// A user has added annotations.
	w.MustKubectl("annotate", "deployment/server", "secret/password", "configmap/settings", "--namespace="+ns, "example.com/note=mine")
	w.MustKubectl("rollout", "restart", "deployment/server", "--namespace="+ns)
	w.MustKubectl("rollout", "status", "deployment/server", "--namespace="+ns, poll.TimeoutFlag)
	w.condition("idle-1", "Ready", "True")
	// Passes caused by the restart may still run.
	w.quiet()
	mark := w.Audit().Mark()
	// The test waits a fixed time, because it expects no event.
	timer := time.NewTimer(silence)
	defer timer.Stop()
	<-timer.C
	if requests := w.Audit().Since(mark, ours, plane.Not(plane.ByVerb("watch"))); len(requests) > 0 {
		w.t.Errorf("%d requests in %s of silence:\n%s", len(requests), silence, requests)
	}
	// Two marks are allowed: for the rollout, and for the garbage collector, which starts once per
	// process.
	if marks := w.Audit().Since(mark, ofMark, plane.Writes()); len(marks) > 2 {
		w.t.Errorf("the mark of the store was raised %d times in %s of silence:\n%s", len(marks), silence, marks)
	}
	// The lease is renewed four times a minute. Two renewals may fall into the silence.
	if writes := w.Audit().Since(mark, byPenstock, plane.Not(ofMark), plane.Writes(), stored); len(writes) > 2 {
		w.t.Errorf("%d writes in %s of silence:\n%s", len(writes), silence, writes)
	}
	if before := w.Audit().Since(0, ours, plane.Writes()); len(before) == 0 {
		w.t.Error("not even the rollout is in the audit log: the test sees nothing")
	}
	w.MustKubectl("delete", "configplan", "--all")
}
