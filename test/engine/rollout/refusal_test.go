//go:build integration

package rollout_test

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// refusesWholePhases: the engine writes no object of a phase if kube-apiserver would refuse one of
// them.
func refusesWholePhases(t *testing.T, c *chain) {
	ns := c.home()
	mismatch := deployment(ns, "bad", "1")
	mismatch["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
	unknownField := configMap(ns, "bad", "1")
	unknownField["dta"] = map[string]any{"a": "b"}
	for name, tc := range map[string]struct {
		object map[string]any
		says   string
	}{
		"invalid":       {mismatch, "selector"},
		"unknown field": {unknownField, "dta"},
		"no namespace":  {configMap("no-such-namespace", "bad", "1"), "no-such-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			x := configMap(ns, "x", "1")
			c.become(rev(1).phase("base", x, tc.object))
			report := c.stuck("1/base " + id(tc.object).String() + ": ApplyRejected")
			if text := messages(report); !strings.Contains(text, tc.says) {
				t.Errorf("the message does not say %q: %s", tc.says, text)
			}
			if got := c.value(x); got != "absent" {
				t.Errorf("another object of the phase was written: %s", got)
			}
			if inventory, _ := c.ledger.load(); len(inventory.Entries) > 0 || len(inventory.Reached) > 0 {
				t.Errorf("the inventory has %v", inventory)
			}
			if failure := report.Layers[0].Phases[0].Failures[0]; !failure.NeedsPerson || report.RequeueAfter <= 0 {
				t.Errorf("want a failure for a user and a next attempt: %+v, %s", failure, report.RequeueAfter)
			}
		})
	}
	// The next revision is valid.
	right := rev(2).phase("base", configMap(ns, "x", "2"), configMap(ns, "bad", "2"))
	c.roll(right)
	c.settled(t, right.objects()...)
}

func refusesWrongScopes(t *testing.T, c *chain) {
	ns := c.home()
	cluster := clusterRole("scope", "get")
	cluster["metadata"].(map[string]any)["namespace"] = ns
	homeless := configMap("", "homeless", "1")
	delete(homeless["metadata"].(map[string]any), "namespace")
	x := configMap(ns, "x", "1")
	c.become(rev(1).phase("base", cluster, homeless, x))
	report := c.stuck("1/base ClusterRole.rbac.authorization.k8s.io scope/scope: ApplyRejected", "1/base ConfigMap homeless: ApplyRejected")
	for _, part := range []string{"must be absent", "metadata.namespace is missing"} {
		if text := messages(report); !strings.Contains(text, part) {
			t.Errorf("the message does not say %q: %s", part, text)
		}
	}
	if got := c.value(x); got != "absent" {
		t.Errorf("another object of the phase was written: %s", got)
	}
}

// waitsForKinds: the engine waits for a kind that is not served yet, and continues by itself when
// it is served.
func waitsForKinds(t *testing.T, c *chain) {
	ns := c.home()
	group := "unknown.example.com"
	late, x := widget(group, "Late", ns, "l", "1"), configMap(ns, "x", "1")
	one := rev(1).phase("base", x, late)
	c.become(one)
	report := c.stuck("1/base Late.unknown.example.com unknown-kind/l: KindNotServed")
	if text := messages(report); !strings.Contains(text, `no kind "Late"`) {
		t.Errorf("the message does not name the kind: %s", text)
	}
	if got := c.value(x); got != "absent" {
		t.Errorf("another object of the phase was written: %s", got)
	}
	c.create(widgets(group, "Late", "lates"))
	c.until("complete", complete)
	c.settled(t, x, late)
}

// waitsForRights: a rollout stops when the engine loses its rights, and continues when it gets them
// back.
func waitsForRights(t *testing.T, c *chain) {
	ns := c.home()
	c.admin = c.User("limited").Config()
	grant := func() {
		c.MustKubectl("create", "clusterrolebinding", "limited", "--clusterrole=cluster-admin", "--user=limited")
	}
	grant()
	x := configMap(ns, "x", "1")
	one := rev(1).phase("base", x)
	c.roll(one)

	c.MustKubectl("delete", "clusterrolebinding/limited")
	// kube-apiserver learns of RBAC changes from a watch, with a delay.
	poll.Eventually(t, "the right to be gone", func() (bool, string) {
		out := c.User("limited").Kubectl("auth", "can-i", "patch", "configmaps", "-n", ns)
		return strings.HasPrefix(out.Stdout, "no"), out.String()
	})
	two := rev(2).phase("base", configMap(ns, "x", "2"), configMap(ns, "y", "2"))
	c.become(two, one)
	report := c.stuck("2/base ConfigMap rights/x: ApplyRejected", "2/base ConfigMap rights/y: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "limited") || !strings.Contains(text, "cannot patch") {
		t.Errorf("the message does not name the user and the missing right: %s", text)
	}
	if got := c.value(x); got != "1" {
		t.Errorf("the existing object changed: %s", got)
	}
	grant()
	c.until("complete", complete)
	c.roll(two)
	c.settled(t, two.objects()...)

	// The same for a deletion.
	c.MustKubectl("delete", "clusterrolebinding/limited")
	poll.Eventually(t, "the right to be gone", func() (bool, string) {
		out := c.User("limited").Kubectl("auth", "can-i", "delete", "configmaps", "-n", ns)
		return strings.HasPrefix(out.Stdout, "no"), out.String()
	})
	c.become()
	c.stuck("leaving ConfigMap rights/x: ApplyRejected", "leaving ConfigMap rights/y: ApplyRejected")
	grant()
	c.until("gone", complete)
	c.settled(t)
}

// hidesSecrets: failures and events do not contain values of a Secret.
func hidesSecrets(t *testing.T, c *chain) {
	ns := c.home()
	const value = "aHVudGVyMg==" // hunter2
	said := func() string { return strings.Join(c.events, "\n") }
	clean := func(where, text string) {
		t.Helper()
		for _, leak := range []string{value, "hunter2", "not base64"} {
			if strings.Contains(text, leak) {
				t.Errorf("%s repeats a value: %s", where, text)
			}
		}
	}
	bad := secret(ns, "s", map[string]any{"value": "hunter2, not base64!"})
	c.become(rev(1).phase("base", bad))
	report := c.until("refused", func(r rollout.Report) bool {
		return len(failures(r)) == 1 && r.Layers[0].Phases[0].Failures[0].Reason != rollout.ReasonWaiting
	})
	clean("a failure", messages(report))

	immutable := secret(ns, "s", map[string]any{"value": value})
	immutable["immutable"] = true
	one := rev(2).phase("base", immutable)
	c.roll(one)
	c.settled(t, immutable)
	changed := secret(ns, "s", map[string]any{"value": "bmV3"})
	changed["immutable"] = true
	c.become(rev(3).phase("base", changed), one)
	report = c.stuck("3/base Secret secret/s: ApplyRejected")
	if text := messages(report); !strings.Contains(text, "data") {
		t.Errorf("the message does not name the field: %s", text)
	}
	clean("a failure", messages(report))

	mutable := secret(ns, "t", map[string]any{"value": value})
	two := rev(4).phase("base", immutable, mutable)
	c.roll(two)
	c.patch(id(mutable), "kubectl-edit", `{"data":{"value":"ZXZpbA=="}}`)
	c.until("repaired", func(r rollout.Report) bool { return complete(r) && c.value(mutable) == value })
	if !strings.Contains(said(), ".data.value was changed by kubectl-edit") {
		t.Errorf("the events do not name the field: %s", said())
	}
	clean("an event", said())
	c.settled(t, two.objects()...)

	// The cache does not keep the value either.
	seen, _ := c.process.watches.Get(id(mutable))
	if seen.Object != nil {
		t.Errorf("the watch stores %v", seen.Object)
	}
}
