//go:build integration

package e2e_test

import (
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// ours passes requests of the parts that roll out and govern: the engines, their
// watches, and their events.
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

// stored passes what the host writes to its etcd: it only answers reviews.
func stored(r plane.Request) bool {
	return !strings.HasSuffix(r.Resource, "reviews") && !strings.Contains(r.URI, "dryRun=")
}

// ofMark passes writes of the mark of the store, which is raised some seconds after the
// last write to the store.
func ofMark(r plane.Request) bool {
	return byPenstock(r) && strings.HasSuffix(r.UserAgent, "/identity")
}

// quiet waits until nothing of ours was sent for some seconds.
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

// idle: rolled out objects cost nothing but watches that are open.
func idle(w sharedPlane) {
	const silence = 20 * time.Second
	ns := w.namespace("idle")
	// The server spells these otherwise than the manifest does.
	server := deployment(ns, "server", "example.com/server:v1")
	container := server["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"requests": map[string]any{"cpu": "0.5", "memory": "1024Mi"}}
	w.roll(revision("idle", 1).Phase("all", configMap(ns, "settings", "x=1"), secret(ns, "password", "hunter2"), server))
	// And a user has added to them.
	w.MustKubectl("annotate", "deployment/server", "secret/password", "configmap/settings", "--namespace="+ns, "example.com/note=mine")
	w.MustKubectl("rollout", "restart", "deployment/server", "--namespace="+ns)
	w.MustKubectl("rollout", "status", "deployment/server", "--namespace="+ns, poll.TimeoutFlag)
	w.condition("idle-1", "Ready", "True")
	// Passes over changes of the restart may still go on.
	w.quiet()
	mark := w.Audit().Mark()
	// This is not a wait for something to happen: nothing is to happen.
	timer := time.NewTimer(silence)
	defer timer.Stop()
	<-timer.C
	if requests := w.Audit().Since(mark, ours, plane.Not(plane.ByVerb("watch"))); len(requests) > 0 {
		w.t.Errorf("%d requests in %s of silence:\n%s", len(requests), silence, requests)
	}
	// Two marks may: of the rollout, and of the collector, which begins once per process.
	if marks := w.Audit().Since(mark, ofMark, plane.Writes()); len(marks) > 2 {
		w.t.Errorf("the mark of the store was raised %d times in %s of silence:\n%s", len(marks), silence, marks)
	}
	// The lease is renewed four times a minute; two renewals may fall into the silence.
	if writes := w.Audit().Since(mark, byPenstock, plane.Not(ofMark), plane.Writes(), stored); len(writes) > 2 {
		w.t.Errorf("%d writes in %s of silence:\n%s", len(writes), silence, writes)
	}
	if before := w.Audit().Since(0, ours, plane.Writes()); len(before) == 0 {
		w.t.Error("not even the rollout is in the audit log: the test sees nothing")
	}
	w.MustKubectl("delete", "configplan", "--all")
}
