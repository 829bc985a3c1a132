//go:build integration

package client_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func TestObserve(t *testing.T) {
	w := start(t)
	t.Run("Requests", func(t *testing.T) { observeRequests(t, w.in(t)) })
	t.Run("LabelRemoved", func(t *testing.T) { observeLabels(t, w.in(t)) })
	t.Run("Secret", func(t *testing.T) { observeSecret(t, w.in(t)) })
	t.Run("KindComesAndGoes", func(t *testing.T) { observeKinds(t, w.in(t)) })
	t.Run("RightTakenAway", func(t *testing.T) { observeRights(t, w.in(t)) })
	t.Run("ServerGone", func(t *testing.T) { observeOutage(t, w.in(t)) })
}

func interest(ref manifest.Ref) observe.Interest {
	return observe.Interest{ID: ref.ID, Version: ref.Version}
}

func create(t *testing.T, h *targetclient.Client, kind kindOf, ref manifest.Ref) *metav1.PartialObjectMetadata {
	t.Helper()
	created, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// observeRequests: many objects need one watch. Idle time costs no request, and Drop ends the
// watch.
func observeRequests(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "observe-requests-host"), w.namespace(t), kinds()["ConfigMap"]
	const objects = 20
	var interests []observe.Interest
	for n := range objects {
		ref := kind.ref(ns, fmt.Sprint("x", n))
		interests = append(interests, interest(ref))
		create(t, h, kind, ref)
	}
	mark := w.Audit().Mark()
	watches := w.watch(t, w.config("observe-requests"), h)
	watches.Want("chain-a", interests...)
	watches.Want("chain-b", interests[0])
	for _, i := range interests {
		watches.untilKnown(t, i.ID, observe.Present)
	}
	mine := plane.ByAgent("observe-requests")
	notHost := plane.Not(plane.ByAgent("observe-requests-host"))
	seen := w.Audit().Since(mark, mine, notHost)
	if len(seen) != 1 || seen[0].Verb != "watch" || seen[0].Resource != "configmaps" {
		t.Errorf("%d objects of two owners: want one request, a watch that streams the list:\n%s", objects, seen)
	}

	// An apply that changes nothing, and a change by another user.
	watches.quiet()
	ref := kind.ref(ns, "x0")
	live, err := h.ReadMetadata(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), targetclient.ApplyOptions{FieldManager: manager, UID: live.UID, ResourceVersion: live.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if applied.ResourceVersion != live.ResourceVersion {
		t.Errorf("an apply without a change changed resource version %s to %s", live.ResourceVersion, applied.ResourceVersion)
	}
	if _, err := w.outsider.Resource(kind.resource).Namespace(ns).Patch(t.Context(), "x0", types.MergePatchType, merge(t, "9", "data", "a"), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	before, _ := ptr.To(names().Observe(applied)).Entry(manager)
	watches.until(t, ref.ID, "drifted", func(seen observe.Observation, _ observe.Presence) bool {
		now, _ := seen.Entry(manager)
		return now != before
	})
	if seen := w.Audit().Since(mark, mine, notHost); len(seen) != 1 {
		t.Errorf("want one request for objects that are watched already:\n%s", seen)
	}

	watches.Drop("chain-a")
	if _, presence := watches.Get(ref.ID); presence != observe.Present {
		t.Errorf("another owner still watches the kind, but %s is %s", ref.ID, presence)
	}
	watches.Drop("chain-b")
	if _, presence := watches.Get(ref.ID); presence != observe.Unknown {
		t.Errorf("no owner watches the kind, but %s is %s", ref.ID, presence)
	}
	poll.Eventually(t, "the watch to end", func() (bool, string) {
		seen := w.Audit().Since(mark, mine, notHost)
		return len(seen) == 1 && !seen[0].Ended.IsZero(), seen.String()
	})
}

// observeLabels: an object that lost its label is absent in a watch by label, and present in a
// watch by name.
func observeLabels(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "observe-labels"), w.namespace(t), kinds()["ConfigMap"]
	labelled, named := kind.ref(ns, "labelled"), kind.ref(ns, "named")
	create(t, h, kind, labelled)
	create(t, h, kind, named)
	watches := w.watch(t, w.config("observe-labels"), h)
	byName := interest(named)
	byName.ByName = true
	watches.Want("chain-a", interest(labelled), interest(named), byName)
	watches.untilKnown(t, labelled.ID, observe.Present)
	watches.untilKnown(t, named.ID, observe.Present)

	for _, name := range []string{"labelled", "named"} {
		_, err := w.outsider.Resource(kind.resource).Namespace(ns).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"penstock.dev/chain":null}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	absent := watches.untilKnown(t, labelled.ID, observe.Absent)
	if absent.ResourceVersion == "" {
		t.Error("an absent object has no resource version")
	}
	watches.until(t, named.ID, "present without a chain", func(seen observe.Observation, p observe.Presence) bool {
		return p == observe.Present && seen.Chain == ""
	})
	if err := w.outsider.Resource(kind.resource).Namespace(ns).Delete(t.Context(), "named", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	watches.untilKnown(t, named.ID, observe.Absent)
}

// observeSecret: the cache keeps no content of a Secret, even if a probe reads the whole object.
func observeSecret(t *testing.T, w targetCluster) {
	h, ns := w.host(t, "observe-secret"), w.namespace(t)
	kind := kindOf{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		body:             map[string]any{"type": "Opaque", "stringData": map[string]any{"password": "hunter2"}},
	}
	ref := kind.ref(ns, "x")
	create(t, h, kind, ref)
	watches := w.watch(t, w.config("observe-secret"), h)
	reading := interest(ref)
	reading.Reads.Whole = true
	watches.Want("chain-a", reading)
	seen := watches.untilKnown(t, ref.ID, observe.Present)
	if seen.Object == nil || seen.Object.Object["type"] != "Opaque" {
		t.Fatalf("fields besides the content of a Secret are missing: %v", seen.Object)
	}
	for _, content := range []string{"data", "stringData"} {
		if _, kept := seen.Object.Object[content]; kept {
			t.Errorf("%s of a Secret is stored", content)
		}
	}
}

// observeKinds: the removal and the return of a kind affect only the watch of that kind.
func observeKinds(t *testing.T, w targetCluster) {
	h, ns, kind, other := w.host(t, "observe-kinds-host"), w.namespace(t), kinds()["CustomResource"], kinds()["ConfigMap"]
	ref, neighbour := kind.ref(ns, "x"), other.ref(ns, "x")
	crd := observe.Interest{ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}, Version: "v1"}
	crd.Reads.Status = true
	mark := w.Audit().Mark()
	watches := w.watch(t, w.config("observe-kinds"), h)
	create(t, h, other, neighbour)
	watches.Want("chain-a", interest(ref), interest(neighbour))
	watches.Want("platform", crd)
	watches.untilKnown(t, neighbour.ID, observe.Present)
	watches.untilKnown(t, crd.ID, observe.Absent)
	watches.until(t, ref.ID, "of a kind that is not served yet", func(_ observe.Observation, p observe.Presence) bool {
		return p == observe.Unknown && meta.IsNoMatchError(watches.Trouble(ref.ID))
	})

	installed := time.Now()
	w.installWidgets()
	watches.untilKnown(t, ref.ID, observe.Absent)
	if took := time.Since(installed); took > 15*time.Second {
		t.Errorf("the new definition was noticed only after %s", took)
	}
	create(t, h, kind, ref)
	watches.untilKnown(t, ref.ID, observe.Present)

	crds := w.outsider.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if err := crds.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	watches.untilKnown(t, ref.ID, observe.Unknown)
	if err := watches.Trouble(ref.ID); err == nil {
		t.Error("the unknown state has no reason")
	}
	if _, presence := watches.Get(neighbour.ID); presence != observe.Present {
		t.Errorf("an object of another kind changed its state: %s is %s", neighbour.ID, presence)
	}

	w.installWidgets()
	watches.untilKnown(t, ref.ID, observe.Absent)
	neighbours := w.Audit().Since(mark, plane.ByAgent("observe-kinds"), plane.Not(plane.ByAgent("observe-kinds-host")), plane.ByResource("configmaps"))
	if len(neighbours) != 1 {
		t.Errorf("want one watch for the other kind:\n%s", neighbours)
	}
}

// line is a network connection that a test can cut.
type line struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// cut closes all connections. With down it also refuses new connections.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns, l.down = nil, down
}

func (l *line) repair() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// observeRights: a user lacks the right to watch, gets it, loses it, and gets it again.
func observeRights(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "observe-rights"), w.namespace(t), kinds()["ConfigMap"]
	there, missing := kind.ref(ns, "there"), kind.ref(ns, "missing")
	create(t, h, kind, there)
	network := &line{}
	config := w.User("observer").Config()
	config.UserAgent, config.Dial = "observe-rights", network.dial
	watches := w.watch(t, config, h)
	grant := func() {
		w.MustKubectl("create", "clusterrole", "observer", "--verb=list,watch", "--resource=configmaps")
		w.MustKubectl("create", "clusterrolebinding", "observer", "--clusterrole=observer", "--user=observer")
	}

	watches.Want("chain-a", interest(there), interest(missing))
	watches.until(t, there.ID, "refused", func(_ observe.Observation, p observe.Presence) bool {
		return p == observe.Unknown && apierrors.IsForbidden(watches.Trouble(there.ID))
	})
	grant()
	watches.untilKnown(t, there.ID, observe.Present)
	watches.untilKnown(t, missing.ID, observe.Absent)

	w.MustKubectl("delete", "clusterrolebinding/observer", "clusterrole/observer")
	// kube-apiserver checks rights only when a watch begins.
	network.cut(false)
	watches.untilKnown(t, missing.ID, observe.Unknown)
	watches.until(t, missing.ID, "refused", func(observe.Observation, observe.Presence) bool {
		return apierrors.IsForbidden(watches.Trouble(missing.ID))
	})
	if _, presence := watches.Get(there.ID); presence != observe.Present {
		t.Errorf("want the last known state, but %s is %s", there.ID, presence)
	}
	mark := w.Audit().Mark()
	start := time.Now()
	grant()
	watches.untilKnown(t, missing.ID, observe.Absent)
	attempts := len(w.Audit().Since(mark, plane.ByAgent("observe-rights"), plane.ByUser("observer")))
	if most := 4 + 2*int(time.Since(start)/time.Second); attempts > most {
		t.Errorf("%d requests in %s is a hot loop", attempts, time.Since(start))
	}
}

// observeOutage: while the server is unreachable, the cache does not report objects as absent.
func observeOutage(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "observe-outage"), w.namespace(t), kinds()["ConfigMap"]
	there, missing := kind.ref(ns, "there"), kind.ref(ns, "missing")
	create(t, h, kind, there)
	network := &line{}
	config := w.config("observe-outage")
	config.Dial = network.dial
	watches := w.watch(t, config, h)
	watches.Want("chain-a", interest(there), interest(missing))
	watches.untilKnown(t, there.ID, observe.Present)
	watches.untilKnown(t, missing.ID, observe.Absent)

	network.cut(true)
	watches.untilKnown(t, missing.ID, observe.Unknown)
	create(t, h, kind, missing)
	network.repair()
	watches.untilKnown(t, missing.ID, observe.Present)
	if _, presence := watches.Get(there.ID); presence != observe.Present {
		t.Errorf("%s is %s", there.ID, presence)
	}
}
