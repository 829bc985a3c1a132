//go:build integration

package rollout_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/rollout"
)

// few fails the test if a step sent more requests than allowed.
func few(t *testing.T, what string, got map[string]int, most map[string]int) {
	t.Helper()
	for verb, n := range got {
		if verb != "discover" && n > most[verb] {
			t.Errorf("%s cost %v, want %v at most", what, got, most)
			return
		}
	}
	t.Logf("%s cost %v", what, got)
}

// restsIn checks that passes before the next retry send no requests.
func (c *chain) restsIn(t *testing.T, state string) {
	t.Helper()
	mark := c.Audit().Mark()
	for range 20 {
		report, err := c.pass()
		if err != nil {
			t.Fatal(err)
		}
		if report.RequeueAfter <= 0 {
			t.Fatalf("%s: no next attempt is scheduled", state)
		}
	}
	// One of the passes may be the due retry.
	few(t, "20 passes of a chain that "+state, c.spent(mark), map[string]int{"try": 2, "apply": 2, "get": 2, "delete": 2})
}

// livesWithRewriting: a mutating webhook changes one of our values on every write. The engine
// cannot win, so it does not write again.
func livesWithRewriting(t *testing.T, c *chain) {
	ns := c.home()
	var writes atomic.Int64
	c.webhook(ns, true, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return allowed(map[string]any{"op": "replace", "path": "/data/value", "value": fmt.Sprint("rewritten-", writes.Add(1))})
	})
	x := configMap(ns, "x", "1")
	mark := c.Audit().Mark()
	c.roll(rev(1).phase("base", x))
	c.seen(x)
	few(t, "a rollout", c.spent(mark), map[string]int{"try": 1, "apply": 1, "get": 1})
	c.quiet()

	// The webhook changes the value again on another user's write.
	mark = c.Audit().Mark()
	c.patch(id(x), "somebody", `{"metadata":{"labels":{"a":"b"}}}`)
	c.until("looked at", func(rollout.Report) bool { return len(c.requests(mark)) > 0 })
	c.seen(x)
	c.until("complete", complete)
	few(t, "somebody's write", c.spent(mark), map[string]int{"apply": 1, "get": 2})
	c.quiet()

	mark = c.Audit().Mark()
	c.roll(rev(2).phase("base", configMap(ns, "x", "2")))
	c.seen(x)
	few(t, "an upgrade", c.spent(mark), map[string]int{"try": 1, "apply": 1, "get": 1})
	c.quiet()
	c.roll()
	if got := c.value(x); got != "absent" {
		t.Errorf("after the teardown, the object is %s", got)
	}
}

// fightsNobody: a controller reverts a value right after each repair.
func fightsNobody(t *testing.T, c *chain) {
	ns := c.home()
	x := configMap(ns, "x", "1")
	c.roll(rev(1).phase("base", x, configMap(ns, "y", "1")))
	mark := c.Audit().Mark()
	var peace atomic.Bool
	var round atomic.Int64
	rival := func() error {
		patch := fmt.Appendf(nil, `{"data":{"value":"mine-%d"}}`, round.Add(1))
		_, err := c.at(id(x)).Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "rival"})
		return err
	}
	c.follow(resources()["ConfigMap"], func(live *unstructured.Unstructured) error {
		if peace.Load() || live.GetNamespace() != ns || live.GetName() != "x" || !strings.HasPrefix(valueOf(live.Object), "1") {
			return nil
		}
		return rival()
	})
	if err := rival(); err != nil {
		t.Fatal(err)
	}
	report := c.stuck("1/base ConfigMap contested-live/x: Contested")
	if text := messages(report); !strings.Contains(text, ".data.value was changed by rival") {
		t.Errorf("the message does not name the field and its other manager: %s", text)
	}
	// The engine repairs five times at once, then after 4, 8, 16 … seconds. A slow machine may have
	// passed some of these waits. TestContested checks the exact numbers.
	few(t, "the fight", c.spent(mark), map[string]int{"apply": 10, "get": 20})
	if report.RequeueAfter <= 0 {
		t.Error("no next repair is scheduled")
	}
	c.restsIn(t, "is contested")
	peace.Store(true)
	c.until("complete", complete)
	if got := c.value(x); got != "1" {
		t.Errorf("the object is %s", got)
	}
}

// waitsForAdmission: a webhook refuses everything, then refuses a write whose dry-run it allowed,
// then times out.
func waitsForAdmission(t *testing.T, c *chain) {
	ns := c.home()
	var judge atomic.Value
	type verdict func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	judge.Store(verdict(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return denied("no new things on Fridays")
	}))
	c.webhook(ns, false, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return judge.Load().(verdict)(request)
	})
	a, b := configMap(ns, "a", "1"), configMap(ns, "b", "1")
	one := rev(1).phase("base", a, b).phase("last", configMap(ns, "c", "1"))
	c.become(one)
	report := c.stuck("1/base ConfigMap admission/a: ApplyRejected", "1/base ConfigMap admission/b: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "no new things on Fridays") || !strings.Contains(text, "admission.example.com") {
		t.Errorf("the message does not name the policy and its reason: %s", text)
	}
	if got := c.value(a); got != "absent" || !report.Layers[0].Phases[0].Failures[0].NeedsPerson {
		t.Errorf("an object was written: %s", got)
	}
	c.restsIn(t, "is refused")

	// The webhook allows the dry-runs and refuses one of the writes: the phase is half written.
	judge.Store(verdict(func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if request.Name == "b" && !*request.DryRun {
			return denied("not b")
		}
		return allowed()
	}))
	// The engine retries the objects separately. The other object keeps its old failure until its
	// own retry.
	c.until("half written", func(r rollout.Report) bool {
		return strings.Join(failures(r), "\n") == "1/base ConfigMap admission/b: ApplyRejected" && strings.Contains(messages(r), "not b")
	})
	if got := []string{c.value(a), c.value(b), c.value(one.objects()[2])}; strings.Join(got, " ") != "1 absent absent" {
		t.Errorf("want only the first object of the phase, and no later phase: %v", got)
	}
	c.patch(id(a), "somebody", `{"data":{"value":"9"}}`)
	c.until("repaired", func(rollout.Report) bool { return c.value(a) == "1" })

	// The webhook does not answer in time.
	late := make(chan struct{})
	t.Cleanup(func() { close(late) })
	judge.Store(verdict(func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		select {
		case <-late:
		case <-time.After(2 * time.Second): // its timeout is one second
		}
		return allowed()
	}))
	c.until("the webhook that is late is named", func(r rollout.Report) bool {
		return strings.Join(failures(r), "\n") == "1/base ConfigMap admission/b: ApplyRejected" && strings.Contains(messages(r), "failed calling webhook")
	})
	judge.Store(verdict(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() }))
	c.until("complete", complete)
	c.settled(t, one.objects()...)
}
