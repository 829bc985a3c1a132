//go:build integration

package extension_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/penstock-project/penstock/pkg/fleet"
)

// hostileParts test Secrets and servers of malicious users.
func hostileParts() map[string]part {
	return map[string]part{"Labelled": labelled, "Swapped": swapped, "Servers": servers}
}

// labelled: a Secret has the set's labels, but the set's author has no right to use it. Penstock
// sends no request to its server. A cluster with two Secrets counts once.
func labelled(v convoy) {
	mallory := v.front(v.targets["c"])
	v.open("mallory", "1", mallory.kubeconfig())
	v.open("z", "1", v.ways["a"].kubeconfig())
	v.apply(v.alice, v.manifest(v.image("1", "")))
	v.excepts("mallory", "Denied")
	v.excepts("z", "SameCluster")
	v.approved(v.bob, 1)
	v.ends(1, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	if got := v.children(); got != "a b c" {
		v.t.Errorf("these clusters have an extension: %s", got)
	}
	if count := mallory.requests.Load(); count > 0 {
		v.t.Errorf("the server of a Secret that alice cannot use got %d requests", count)
	}
}

// swapped: during the change of a cluster, its Secret is changed to another cluster. Only that
// cluster fails, and the other cluster gets nothing.
func swapped(v convoy) {
	one := []string{"maxUnavailable: 2", "maxUnavailable: 2, maxFailures: 1"}
	v.rolledOut(1, v.manifest(v.image("1", ""), one...), "a Succeeded, b Succeeded, c Succeeded")
	v.apply(v.alice, v.manifest(v.image("2", v.deployment()), one...))
	v.approved(v.bob, 2)
	v.available("a", true)
	v.rollout(2, "the change of b begins", v.is("b", fleet.Updating))
	v.open("b", "1", v.front(v.Cluster).kubeconfig())
	failed := v.place(v.rollout(2, "b fails", v.is("b", fleet.Failed)), "b")
	if failed.Reason != string(fleet.ReasonOtherCluster) {
		v.t.Errorf("b failed with %s", failed.Reason)
	}
	v.available("c", true)
	v.ends(2, fleet.Completed, "a Succeeded, b Failed, c Succeeded")
	if got := v.MustKubectl("-n", v.name, "get", "--ignore-not-found", "-o", "name", "configmap/lamp", "deployment/lamp"); got != "" {
		v.t.Errorf("the other cluster got %s", got)
	}
}

// servers: a server that never answers, a server with endless answers and a server that redirects
// count as unreachable clusters. The other clusters continue. Penstock does not follow the
// redirect.
func servers(v convoy) {
	const most = 1 << 30
	var elsewhere atomic.Int64
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	v.t.Cleanup(thief.Close)
	var longest atomic.Int64
	v.rolledOut(1, v.manifest(v.image("1", "")), "a Succeeded, b Succeeded, c Succeeded")
	for i, misbehaves := range []http.HandlerFunc{
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			part, sent := make([]byte, 1<<20), int64(0)
			for j := range part {
				part[j] = ' '
			}
			for sent < most {
				n, err := w.Write(part)
				if sent += int64(n); err != nil {
					break
				}
			}
			for before := longest.Load(); sent > before && !longest.CompareAndSwap(before, sent); before = longest.Load() {
			}
		},
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
	} {
		version, number := fmt.Sprint(i+2), i+2
		v.apply(v.alice, v.manifest(v.image(version, "")))
		v.rollout(number, "it waits for an approval", inPhase(fleet.ReviewRequired))
		v.ways["b"].answer(misbehaves)
		v.approved(v.bob, number)
		v.ends(number, fleet.Completed, "a Succeeded, b Deferred, c Succeeded")
		v.have(version, fmt.Sprint(i+1), version)
		v.ways["b"].mend()
		v.rollout(number, "b follows", v.is("b", fleet.Succeeded))
		v.have(version, version, version)
	}
	if got := longest.Load(); got == 0 || got > most/8 {
		v.t.Errorf("%d bytes of an answer were read", got)
	}
	if count := elsewhere.Load(); count > 0 {
		v.t.Errorf("%d requests went to another server", count)
	}
}
