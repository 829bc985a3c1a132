//go:build integration

package rollout_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// waitsForNamespaces: a namespace that is being deleted accepts no objects until its finalizers are
// removed.
func waitsForNamespaces(t *testing.T, c *chain) {
	ns := c.name
	home := namespace(ns)
	c.create(home)
	c.patch(id(home), "somebody", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	c.remove(id(home))
	other, x := configMap("kube-public", "terminating", "1"), configMap(ns, "x", "1")
	c.become(rev(1).phase("first", other).phase("second", x))
	report := c.stuck("1/second ConfigMap terminating/x: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "being terminated") || report.Layers[0].Phases[1].Failures[0].NeedsPerson {
		t.Errorf("want a message about the terminating namespace that needs no user: %s", text)
	}
	c.restsIn(t, "waits for a namespace")
	c.patch(id(home), "somebody", `{"metadata":{"finalizers":null}}`)
	poll.Eventually(t, "the namespace to be gone", func() (bool, string) { return c.get(id(home)) == nil, "it is there" })
	c.create(namespace(ns))
	c.until("complete", complete)
	c.settled(t, other, x)
	c.roll()
}

// survivesNewSchemas: another user removes a field from a kind's definition. A revision adds a
// field and uses it at once.
func survivesNewSchemas(t *testing.T, c *chain) {
	ns := c.home()
	group := "schema.example.com"
	// strict returns a definition whose spec has only these fields.
	strict := func(fields ...string) map[string]any {
		definition := widgets(group, "Strict", "stricts")
		properties := map[string]any{}
		for _, name := range fields {
			properties[name] = map[string]any{"type": "string"}
		}
		version := definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
		schema["spec"] = map[string]any{"type": "object", "properties": properties}
		return definition
	}
	w := func(value string, more ...string) map[string]any {
		object := widget(group, "Strict", ns, "w", value)
		for _, name := range more {
			object["spec"].(map[string]any)[name] = value
		}
		return object
	}
	one := rev(1).phase("all", strict("value"), w("1"))
	c.roll(one)
	// The phase adds the field to the definition and also uses it.
	two := rev(2).phase("all", strict("value", "more"), w("2", "more"))
	c.roll(two, one)
	c.roll(two)
	c.settled(t, two.objects()...)
	c.quiet()

	// The revision uses a field that its own definition lacks. The engine finds out before any
	// write, and without a request.
	wrong := strict("value", "more", "even")
	mark := c.Audit().Mark()
	bad := w("3", "most")
	c.become(rev(3).phase("first", configMap(ns, "first", "3")).phase("definitions", wrong).phase("instances", bad), two)
	report := c.stuck("3/instances Strict.schema.example.com schema/w: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "spec.most") || !strings.Contains(text, "by the definition in the same revision") {
		t.Errorf("the message does not name the field: %s", text)
	}
	if got := c.value(configMap(ns, "first", "")); got != "absent" {
		t.Error("an earlier phase was written")
	}
	few(t, "the judgement", c.spent(mark), nil)
	c.roll(two)

	// The revision uses a field that no definition has.
	three := rev(4).phase("all", w("3", "most"))
	c.become(three, two)
	report = c.stuck("4/all Strict.schema.example.com schema/w: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "most") {
		t.Errorf("the message does not name the field: %s", text)
	}
	c.restsIn(t, "does not fit its definition")
	c.roll(two)

	// Another user removes a field that is in use. The object keeps its value, and the engine's
	// repair restores the field.
	definition := strict("value")
	raw, err := json.Marshal(definition["spec"])
	if err != nil {
		t.Fatal(err)
	}
	c.patch(id(definition), "kubectl-edit", `{"spec":`+string(raw)+`}`)
	c.until("repaired", func(r rollout.Report) bool {
		live := c.get(id(definition))
		return complete(r) && strings.Contains(string(mustJSON(live.Object["spec"])), `"more"`)
	})
	c.settled(t, two.objects()...)
}

func mustJSON(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	return raw
}

// survivesDeadServers: an aggregated API without a running server blocks only objects of its own
// kinds.
func survivesDeadServers(t *testing.T, c *chain) {
	ns := c.home()
	group := "down.example.com"
	service := map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": ns, "name": "nobody"}}}
	c.create(service)
	x, lost := configMap(ns, "x", "1"), widget(group, "Missing", ns, "m", "1")
	c.become(rev(1).phase("base", x).phase("more", configMap(ns, "y", "1"), lost))
	report := c.until("stuck", func(r rollout.Report) bool {
		now := strings.Join(failures(r), "\n")
		return strings.HasPrefix(now, "1/more Missing.down.example.com aggregated-down/m: ") && !strings.HasSuffix(now, rollout.ReasonWaiting) && c.value(x) == "1"
	})
	if text := messages(report); !strings.Contains(text, "down.example.com/v1") {
		t.Errorf("the message does not name the API: %s", text)
	}
	t.Log(failures(report), messages(report))
	c.restsIn(t, "waits for an API")
	// The engine still repairs all other objects at once.
	c.patch(id(x), "somebody", `{"data":{"value":"9"}}`)
	c.until("repaired", func(rollout.Report) bool { return c.value(x) == "1" })
	other := c.targetCluster.chain("beside-a-dead-api")
	other.roll(rev(1).phase("base", configMap(ns, "z", "1"), clusterRole("beside-a-dead-api", "get")))
	other.roll()

	// Another server takes over the group.
	c.remove(id(service))
	c.create(widgets(group, "Missing", "missings"))
	c.until("complete", complete)
	c.settled(t, x, configMap(ns, "y", "1"), lost)
}

// livesWithoutManagedFields: without managedFields the engine compares values.
func livesWithoutManagedFields(t *testing.T, c *chain) {
	ns := c.home()
	way := newRoad(t, c.Config())
	way.forgetManagers()
	c.admin = way.config()
	x := configMap(ns, "x", "1")
	one := rev(1).phase("base", x, deployment(ns, "app", "1"))
	c.roll(one)
	c.seen(x)
	c.until("complete", complete)
	c.quiet()
	c.patch(id(x), "somebody", `{"metadata":{"annotations":{"a":"b"}}}`)
	c.seen(x)
	c.until("complete", complete)
	c.quiet()
	c.patch(id(x), "somebody", `{"data":{"value":"9"}}`)
	c.until("repaired", func(r rollout.Report) bool { return complete(r) && c.value(x) == "1" })
	c.seen(x)
	c.until("complete", complete)
	c.run()
	c.until("complete", complete)
	c.quiet()
	two := rev(2).phase("base", configMap(ns, "x", "2"))
	c.roll(two)
	if got := []string{c.value(x), c.value(one.objects()[1])}; !slices.Equal(got, []string{"2", "absent"}) {
		t.Errorf("after an upgrade, the objects are %v", got)
	}
	c.roll()
	if got := c.value(x); got != "absent" {
		t.Errorf("after the teardown it is %s", got)
	}
}

// waitsForQuota: the quota allows each object alone, but not both.
func waitsForQuota(t *testing.T, c *chain) {
	ns := c.home()
	quota := c.outsider.Resource(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}).Namespace(ns)
	limit := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": map[string]any{"namespace": ns, "name": "q"}, "spec": map[string]any{"hard": map[string]any{"count/configmaps": "1"}}}}
	if _, err := quota.Create(t.Context(), limit, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	allow := func(hard string, used string) {
		t.Helper()
		status := `{"spec":{"hard":{"count/configmaps":"` + hard + `"}},"status":{"hard":{"count/configmaps":"` + hard + `"},"used":{"count/configmaps":"` + used + `"}}}`
		for _, subresource := range [][]string{nil, {"status"}} {
			if _, err := quota.Patch(t.Context(), "q", types.MergePatchType, []byte(status), metav1.PatchOptions{}, subresource...); err != nil {
				t.Fatal(err)
			}
		}
	}
	allow("1", "0")
	one := rev(1).phase("base", configMap(ns, "a", "1"), configMap(ns, "b", "1")).phase("last", secret(ns, "s", nil))
	c.parallel = 1
	c.become(one)
	report := c.until("stuck", func(r rollout.Report) bool {
		return len(failures(r)) == 1 && strings.HasSuffix(failures(r)[0], rollout.ReasonRejected)
	})
	if text := messages(report); !strings.Contains(text, "exceeded quota") {
		t.Errorf("the message does not name the quota: %s", text)
	}
	if got := c.value(one.objects()[2]); got != "absent" {
		t.Errorf("the next phase was begun")
	}
	c.restsIn(t, "exceeds a quota")
	allow("5", "1")
	c.until("complete", complete)
	c.settled(t, one.objects()...)
}

// heedsRetryAfter: after a 429 the engine waits as long as Retry-After says.
func heedsRetryAfter(t *testing.T, c *chain) {
	ns := c.home()
	way := newRoad(t, c.Config())
	c.admin = way.config()
	var refused, early atomic.Int64
	var until atomic.Int64
	way.meeting(func(request *http.Request) *http.Response {
		if request.Method != http.MethodPatch || !strings.HasPrefix(request.URL.Path, "/api/v1/") {
			return nil
		}
		if now := time.Now().UnixMilli(); now < until.Load()-100 {
			early.Add(1)
		}
		if refused.Add(1) > 4 {
			return nil
		}
		// Requests in flight are refused too.
		until.Store(time.Now().Add(time.Second).UnixMilli())
		return reply(http.StatusTooManyRequests, http.Header{"Retry-After": []string{"1"}},
			metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: http.StatusTooManyRequests, Message: "busy"})
	})
	c.parallel = 1
	one := rev(1).phase("base", configMap(ns, "a", "1"), configMap(ns, "b", "1"), clusterRole("busy", "get"))
	c.roll(one)
	c.settled(t, one.objects()...)
	if n := early.Load(); n > 0 {
		t.Errorf("%d requests came before the time that the server had named", n)
	}
	if refused.Load() < 4 {
		t.Errorf("the server was busy %d times, want 4", refused.Load())
	}
}

// survivesConflicts: another user writes to an object right before each write of the engine.
func survivesConflicts(t *testing.T, c *chain) {
	ns := c.home()
	way := newRoad(t, c.Config())
	c.admin = way.config()
	x := configMap(ns, "x", "1")
	one := rev(1).phase("base", x, configMap(ns, "y", "1"))
	c.roll(one)
	var tries atomic.Int64
	way.meeting(func(request *http.Request) *http.Response {
		if isWrite(request, "x") && !isDry(request) {
			n := tries.Add(1)
			patch := []byte(`{"metadata":{"annotations":{"storm":"` + time.Now().String() + `"}}}`)
			if _, err := c.at(id(x)).Patch(context.Background(), "x", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "storm"}); err != nil && n < 100 {
				t.Errorf("patching: %v", err)
			}
		}
		return nil
	})
	two := rev(2).phase("base", configMap(ns, "x", "2"), configMap(ns, "y", "2"))
	c.become(two, one)
	report := c.until("left alone", func(r rollout.Report) bool {
		return strings.Contains(messages(r), "other clients wrote to it between each read and write")
	})
	if got := failures(report); !slices.Contains(got, "2/base ConfigMap conflicts/x: Waiting") || report.RequeueAfter <= 0 {
		t.Errorf("stuck with %v, again in %s", got, report.RequeueAfter)
	}
	if n := tries.Load(); n > 12 {
		t.Errorf("it tried %d times before it waited", n)
	}
	c.restsIn(t, "is overtaken")
	way.meeting(nil)
	c.roll(two)
	c.settled(t, two.objects()...)
}

// survivesCutRoads: while the cluster is unreachable, the engine knows nothing and does nothing. A
// restart does not change that.
func survivesCutRoads(t *testing.T, c *chain) {
	ns := c.home()
	way := newRoad(t, c.Config())
	c.admin = way.config()
	one := rev(1).phase("base", configMap(ns, "x", "1"), configMap(ns, "y", "1"), deployment(ns, "app", "1"))
	c.roll(one)
	c.seen(one.objects()[0])
	uid := c.uid(one.objects()[0])

	way.close()
	c.remove(id(one.objects()[1])) // no watch reports this
	mark := c.Audit().Mark()
	before, _ := way.counts()
	// The cache trusts its watches for a moment, and then reports their state as unknown.
	c.until("in trouble", func(rollout.Report) bool {
		return c.process.watches.Stats().Unhealthy == c.process.watches.Stats().Watches
	})
	for range 5 {
		if report, err := c.pass(); err != nil || !report.Layers[0].Unknown || report.Layers[0].Complete {
			t.Errorf("want an unknown state while the watch is down: %v %v", failures(report), err)
		}
	}
	c.run()
	report := c.until("told", func(r rollout.Report) bool {
		return strings.Contains(strings.Join(failures(r), "\n"), rollout.ReasonUnreachable)
	})
	if !report.Layers[0].Unknown || len(report.Leaving) > 0 || report.Layers[0].Complete {
		t.Errorf("want an unknown state for objects that cannot be read: %v", failures(report))
	}
	// A teardown does not read a missing answer as a deleted object either.
	layers := c.layers
	c.become()
	if report, err := c.pass(); err != nil || len(report.Leaving) != 3 {
		t.Errorf("want all three objects still to be deleted: %v %v", failures(report), err)
	}
	c.layers = layers
	if requests := c.requests(mark); len(requests) > 0 {
		t.Errorf("these requests reached the server:\n%s", requests)
	}
	if now, _ := way.counts(); now-before > 100 {
		t.Errorf("%d connections were tried", now-before)
	}

	way.open()
	c.process.wake()
	c.until("complete", func(r rollout.Report) bool { return complete(r) && c.value(one.objects()[1]) == "1" })
	c.settled(t, one.objects()...)
	if got := c.uid(one.objects()[0]); got != uid {
		t.Error("an object was replaced")
	}
	if got := c.spent(mark); got["apply"] > 3 || got["delete"] > 0 {
		t.Errorf("recovery cost %v although only one object was missing", got)
	}
}

// leavesOne: an object with the teardown policy Orphan stays when the others are deleted.
func leavesOne(t *testing.T, c *chain) {
	ns := c.home()
	kept, asked, gone := configMap(ns, "kept", "1"), configMap(ns, "asked", "1"), configMap(ns, "gone", "1")
	kept["metadata"].(map[string]any)["annotations"] = map[string]any{"penstock.dev/teardown-policy": "Orphan"}
	c.roll(rev(1).phase("base", kept, asked, gone))
	// A user may set the annotation too.
	c.patch(id(asked), "kubectl-annotate", `{"metadata":{"annotations":{"penstock.dev/teardown-policy":"Orphan"}}}`)
	c.until("complete", complete)
	c.roll()
	c.settled(t)
	if got := []string{c.value(kept), c.value(asked), c.value(gone)}; !slices.Equal(got, []string{"1", "1", "absent"}) {
		t.Errorf("left are %v", got)
	}
	for _, object := range []map[string]any{kept, asked} {
		if seen := names().Observe(c.get(id(object))); seen.Chain != "" || seen.Applied != "" {
			t.Errorf("the object still has our marks: %+v", seen)
		}
	}
}

// leavesPeopleTheirs: users' additions to a workload survive upgrades.
func leavesPeopleTheirs(t *testing.T, c *chain) {
	ns := c.home()
	app := func(value string) map[string]any { return deployment(ns, "app", value) }
	c.roll(rev(1).phase("base", app("1")))
	c.MustKubectl("label", "-n", ns, "deployment", "app", "team=payments")
	c.MustKubectl("annotate", "-n", ns, "deployment", "app", "example.com/note=hello")
	c.MustKubectl("rollout", "restart", "-n", ns, "deployment", "app")
	restarted := func() string {
		at, _, _ := unstructured.NestedString(c.get(id(app(""))).Object, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		return at
	}
	at := restarted()
	c.seen(app(""))
	c.until("complete", complete)
	c.roll(rev(2).phase("base", app("2")))
	live := c.get(id(app("")))
	if live.GetLabels()["team"] != "payments" || live.GetAnnotations()["example.com/note"] != "hello" || at == "" || restarted() != at {
		t.Errorf("changes of users were lost: %v %v %q %q", live.GetLabels(), live.GetAnnotations(), at, restarted())
	}
	for _, said := range c.events {
		if strings.HasPrefix(said, "Repaired") {
			t.Errorf("an event calls it drift: %s", said)
		}
	}
	c.settled(t, app("2"))
}
