package wait_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/wait"
)

func now() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// at returns times for a target that was written a day ago.
func at() wait.Times { return written(24 * time.Hour) }

func written(since time.Duration) wait.Times {
	return wait.Times{Now: now(), Written: now().Add(-since)}
}

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// target returns a MachineConfig with psi=1 for workers.
func target() *unstructured.Unstructured {
	return object(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": "99-psi", "labels": map[string]any{"role": "worker"}},
		"spec":     map[string]any{"kernelArguments": []any{"psi=1"}},
	})
}

func config(name string, arguments ...any) *unstructured.Unstructured {
	return object(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"kernelArguments": arguments},
	})
}

// pool returns a pool whose nodes have their whole configuration.
func pool(name string, nodes int64, changes ...func(spec, status map[string]any)) *unstructured.Unstructured {
	configuration := func() map[string]any {
		return map[string]any{"name": "rendered-new", "source": []any{map[string]any{"name": "99-psi"}}}
	}
	spec := map[string]any{
		"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"role": "worker"}}, "configuration": configuration(),
	}
	status := map[string]any{
		"configuration": configuration(), "machineCount": nodes, "updatedMachineCount": nodes, "readyMachineCount": nodes,
		"observedGeneration": int64(3), "conditions": []any{map[string]any{"type": "Updated", "status": "True"}},
	}
	for _, change := range changes {
		change(spec, status)
	}
	return object(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
		"metadata": map[string]any{"name": name, "generation": int64(3)}, "spec": spec, "status": status,
	})
}

func rolling(_, status map[string]any) {
	status["configuration"] = map[string]any{"name": "rendered-old"}
	status["updatedMachineCount"] = int64(1)
	status["conditions"] = []any{map[string]any{"type": "Updated", "status": "False"}}
}

func degraded(kind string, since time.Duration) func(spec, status map[string]any) {
	return func(spec, status map[string]any) {
		rolling(spec, status)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": kind, "status": "True", "message": "because",
			"lastTransitionTime": now().Add(-since).Format(time.RFC3339)})
	}
}

func facts(pools ...*unstructured.Unstructured) profile.Facts {
	return profile.Facts{Objects: map[schema.GroupKind][]*unstructured.Unstructured{
		profile.MachineConfigPoolKind(): pools,
		profile.MachineConfigKind():     {config("rendered-new", "psi=0", "psi=1"), config("rendered-old"), config("rendered-off", "psi=1", "psi=0")},
	}}
}

func TestPools(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		facts  profile.Facts
		want   wait.State
		says   string
	}{
		"ready":         {"content, counts and conditions agree", facts(pool("worker", 3)), wait.Done, "stable and ready (3 nodes)"},
		"no pool":       {"nothing ever happens", facts(), wait.Done, "no MachineConfigPool"},
		"rolling":       {"", facts(pool("worker", 3, rolling)), wait.Waiting, "updated 1/3 nodes"},
		"updating race": {"Updated is true and a node is not", facts(pool("worker", 3, func(_, s map[string]any) { s["updatedMachineCount"] = int64(2) })), wait.Waiting, "2/3"},
		"not ready":     {"updated is not enough", facts(pool("worker", 3, func(_, s map[string]any) { s["readyMachineCount"] = int64(2) })), wait.Waiting, "ready 2/3"},
		"not observed":  {"the pool does not know of its change", facts(pool("worker", 3, func(_, s map[string]any) { s["observedGeneration"] = int64(2) })), wait.Waiting, "stabilize"},
		"content gone": {"the name is a source, and another argument wins", facts(pool("worker", 3, func(spec, s map[string]any) {
			spec["configuration"].(map[string]any)["name"] = "rendered-off"
			s["configuration"].(map[string]any)["name"] = "rendered-off"
		})), wait.Waiting, "to be rendered"},
		"render failed": {"our own MachineConfig is bad", facts(pool("worker", 3, degraded("RenderDegraded", time.Second))), wait.Failed, "cannot be rendered: because"},
		"node degraded": {"it may recover", facts(pool("worker", 3, degraded("NodeDegraded", time.Minute))), wait.Waiting, "fails the item in 9m0s"},
		"degraded long": {"it does not", facts(pool("worker", 3, degraded("NodeDegraded", time.Hour))), wait.Failed, "because"},
		"one of two":    {"the worst counts", facts(pool("worker", 3), pool("infra", 2, rolling)), wait.Waiting, `"infra" to stabilize`},
		"paused and rolling": {"what rolls is waited for, in its time", facts(pool("worker", 3, func(spec, s map[string]any) {
			rolling(spec, s)
			spec["paused"] = true
		}), pool("infra", 2, rolling)), wait.Waiting, "is paused"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.reason, wait.For(target(), nil, c.facts, at()), c.want, c.says)
		})
	}
}

func check(t *testing.T, reason string, got wait.Verdict, want wait.State, says string) {
	t.Helper()
	if got.State != want || !strings.Contains(got.Message, says) {
		t.Errorf("%s: %s %q, want %s and %q", reason, got.State, got.Message, want, says)
	}
}

func TestDefect08EmptyPoolIsReady(t *testing.T) {
	check(t, "a compact cluster has workers without nodes", wait.For(target(), nil, facts(pool("worker", 0)), at()), wait.Done, "has no nodes")
}

func TestDefect09PausedPoolSaysSo(t *testing.T) {
	paused := pool("worker", 3, rolling, func(spec, _ map[string]any) { spec["paused"] = true })
	check(t, "a person has to act", wait.For(target(), nil, facts(paused), at()), wait.Paused, "set spec.paused to false")
}

func TestDefect10CustomPoolsCount(t *testing.T) {
	custom := pool("gpu", 2, rolling, func(spec, _ map[string]any) {
		spec["machineConfigSelector"] = map[string]any{"matchExpressions": []any{
			map[string]any{"key": "role", "operator": "In", "values": []any{"worker", "gpu"}}}}
	})
	check(t, "its nodes get the change too", wait.For(target(), nil, facts(pool("worker", 3), custom), at()), wait.Waiting, `"gpu"`)
}

func TestDefect11OldUpdatedIsNotBelieved(t *testing.T) {
	old := pool("worker", 3, func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"] = map[string]any{"name": "rendered-old", "source": []any{map[string]any{"name": "00-worker"}}}
		}
	})
	check(t, "Updated is about what it had before", wait.For(target(), nil, facts(old), at()), wait.Waiting, "to be rendered")
	updated := pool("worker", 3, func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"].(map[string]any)["name"] = "rendered-old"
		}
	})
	check(t, "a target that was changed is a source already", wait.For(target(), nil, facts(updated), at()), wait.Waiting, "to be rendered")
}

func TestDescheduler(t *testing.T) {
	wanted := object(map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler"})
	live := func(status string, since time.Duration) *unstructured.Unstructured {
		return object(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "TargetConfigControllerDegraded", "status": status, "message": "bad value", "lastTransitionTime": now().Add(-since).Format(time.RFC3339)}}}})
	}
	check(t, "no operator, no complaint", wait.For(wanted, object(map[string]any{}), profile.Facts{}, at()), wait.Done, "")
	check(t, "not seen yet", wait.For(wanted, nil, profile.Facts{}, at()), wait.Waiting, "")
	check(t, "healthy", wait.For(wanted, live("False", time.Hour), profile.Facts{}, at()), wait.Done, "")
	check(t, "it tries again", wait.For(wanted, live("True", time.Minute), profile.Facts{}, at()), wait.Waiting, "bad value")
	check(t, "it gave up", wait.For(wanted, live("True", time.Hour), profile.Facts{}, at()), wait.Failed, "bad value")
}

func TestGone(t *testing.T) {
	without := func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"] = map[string]any{"name": "rendered-old", "source": []any{map[string]any{"name": "00-worker"}}}
		}
	}
	check(t, "the pool has it still", wait.Gone(target(), facts(pool("worker", 3)), at()), wait.Waiting, "to be rendered without")
	check(t, "nodes are on their way back", wait.Gone(target(), facts(pool("worker", 3, without, func(_, s map[string]any) { s["updatedMachineCount"] = int64(1) })), at()), wait.Waiting, "updated 1/3")
	check(t, "all are back", wait.Gone(target(), facts(pool("worker", 3, without)), at()), wait.Done, "stable and ready")
	check(t, "other kinds leave nothing behind", wait.Gone(object(map[string]any{"kind": "ConfigMap"}), profile.Facts{}, at()), wait.Done, "")
}

// TestNodeHealthCheck: a health check is in effect when its operator enables it. A disabled health
// check fails after a while, and a paused health check waits without limit.
func TestNodeHealthCheck(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	target := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck"}}
	status := func(phase string, since time.Duration) *unstructured.Unstructured {
		live := target.DeepCopy()
		live.Object["status"] = map[string]any{"phase": phase, "observedNodes": int64(3), "healthyNodes": int64(2), "conditions": []any{map[string]any{
			"type": "Disabled", "status": "True", "message": "MachineHealthCheck detected", "lastTransitionTime": now.Add(-since).Format(time.RFC3339)}}}
		return live
	}
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want wait.State
		says string
	}{
		"unseen":       {nil, wait.Waiting, "waiting to see"},
		"not taken up": {target, wait.Waiting, "take it up"},
		"enabled":      {status("Enabled", 0), wait.Done, "checks 3 nodes, 2 of them healthy"},
		"remediating":  {status("Remediating", 0), wait.Done, "checks 3 nodes"},
		"paused":       {status("Paused", 0), wait.Paused, "spec.pauseRequests"},
		"disabled":     {status("Disabled", time.Minute), wait.Waiting, "fails the item in 9m0s: MachineHealthCheck detected"},
		"for long":     {status("Disabled", time.Hour), wait.Failed, "MachineHealthCheck detected"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wait.For(target, c.live, profile.NewFacts(), wait.Times{Now: now}); got.State != c.want || !strings.Contains(got.Message, c.says) {
				t.Errorf("got %+v, want %s: %s", got, c.want, c.says)
			}
		})
	}
}

// TestFilesAreRendered: a pool has a MachineConfig when its rendered configuration contains the
// same files and units. A changed MachineConfig was a source before, so its name does not suffice.
func TestFilesAreRendered(t *testing.T) {
	file := func(content string) map[string]any {
		return map[string]any{"storage": map[string]any{"files": []any{map[string]any{"path": "/etc/a", "mode": int64(420), "contents": map[string]any{"source": "data:," + content}}}}}
	}
	config := func(name, content string) *unstructured.Unstructured {
		return object(map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"role": "worker"}}, "spec": map[string]any{"config": file(content)}})
	}
	pool := object(map[string]any{"kind": "MachineConfigPool", "metadata": map[string]any{"name": "worker"}, "spec": map[string]any{
		"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"role": "worker"}},
		"configuration":         map[string]any{"name": "rendered", "source": []any{map[string]any{"name": "90-a"}}}},
		"status": map[string]any{"configuration": map[string]any{"name": "rendered"}, "conditions": []any{map[string]any{"type": "Updated", "status": "True"}},
			"machineCount": int64(2), "updatedMachineCount": int64(2), "readyMachineCount": int64(2)}})
	for content, want := range map[string]wait.State{"old": wait.Waiting, "new": wait.Done} {
		facts := profile.NewFacts()
		facts.Objects[profile.MachineConfigPoolKind()] = []*unstructured.Unstructured{pool}
		rendered := config("rendered", content)
		profile.Summarize(rendered)
		facts.Objects[profile.MachineConfigKind()] = []*unstructured.Unstructured{rendered}
		if got := wait.For(config("90-a", "new"), nil, facts, at()); got.State != want {
			t.Errorf("with the %s file it is %+v", content, got)
		}
	}
}

// TestKubeletConfig: the plan waits until the operator has accepted a KubeletConfig and generated a
// MachineConfig, each selected pool has rendered that MachineConfig, and all nodes have it.
func TestKubeletConfig(t *testing.T) {
	labels := map[string]any{"pools/worker": ""}
	target := object(map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": map[string]any{"name": "swap", "generation": int64(2)},
		"spec": map[string]any{"machineConfigPoolSelector": map[string]any{"matchLabels": labels}}})
	said := func(observed int64, kind, status string) *unstructured.Unstructured {
		live := target.DeepCopy()
		live.Object["status"] = map[string]any{"observedGeneration": observed, "conditions": []any{
			map[string]any{"type": "Success", "status": "True"}, map[string]any{"type": kind, "status": status, "message": "failSwapOn is not allowed"}}}
		return live
	}
	conf := func(name, content string, owned bool) *unstructured.Unstructured {
		config := object(map[string]any{"kind": "MachineConfig", "metadata": map[string]any{"name": name}, "spec": map[string]any{"config": map[string]any{
			"storage": map[string]any{"files": []any{map[string]any{"path": profile.KubeletConfigFile, "contents": map[string]any{"source": "data:," + content}}}}}}})
		if owned {
			config.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"kind": "KubeletConfig", "name": "swap", "apiVersion": "v1", "uid": "u"}}
		}
		return config
	}
	pool := func(has string, paused bool) *unstructured.Unstructured {
		truth := map[bool]string{true: "True", false: "False"}[has == "rendered"]
		return object(map[string]any{"kind": "MachineConfigPool", "metadata": map[string]any{"name": "worker", "labels": labels},
			"spec": map[string]any{"paused": paused, "configuration": map[string]any{"name": "rendered", "source": []any{map[string]any{"name": "99-worker-generated-kubelet"}}}},
			"status": map[string]any{"configuration": map[string]any{"name": has}, "conditions": []any{map[string]any{"type": "Updated", "status": truth}},
				"machineCount": int64(2), "updatedMachineCount": int64(2), "readyMachineCount": int64(2)}})
	}
	generated, rendered, old := conf("99-worker-generated-kubelet", "failSwapOn:%20false", true), conf("rendered", "failSwapOn:%20false", false), conf("rendered", "kind:%20x", false)
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		all  []*unstructured.Unstructured
		pool *unstructured.Unstructured
		want wait.State
		says string
	}{
		"unseen":        {nil, nil, pool("rendered", false), wait.Waiting, "waiting to see"},
		"not looked at": {said(1, "Success", "True"), nil, pool("rendered", false), wait.Waiting, "to look at the KubeletConfig"},
		"refused":       {said(2, "Failure", "False"), nil, pool("rendered", false), wait.Failed, "refuses the KubeletConfig: failSwapOn is not allowed"},
		"nothing made":  {said(2, "Success", "True"), []*unstructured.Unstructured{rendered}, pool("rendered", false), wait.Waiting, "to be rendered into"},
		"not rendered":  {said(2, "Success", "True"), []*unstructured.Unstructured{generated, old}, pool("rendered", false), wait.Waiting, "to be rendered into"},
		"rolling":       {said(2, "Success", "True"), []*unstructured.Unstructured{generated, rendered}, pool("before", false), wait.Waiting, "to stabilize"},
		"paused":        {said(2, "Success", "True"), []*unstructured.Unstructured{generated, rendered}, pool("before", true), wait.Paused, "is paused"},
		"through":       {said(2, "Success", "True"), []*unstructured.Unstructured{generated, rendered}, pool("rendered", false), wait.Done, "stable and ready"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := profile.NewFacts()
			facts.Objects[profile.MachineConfigPoolKind()] = []*unstructured.Unstructured{c.pool}
			facts.Objects[profile.MachineConfigKind()] = c.all
			if got := wait.For(target, c.live, facts, at()); got.State != c.want || !strings.Contains(got.Message, c.says) {
				t.Errorf("got %+v, want %s: %s", got, c.want, c.says)
			}
		})
	}
	// After a rollback, the generated MachineConfig must be deleted and removed from the pools.
	facts := profile.NewFacts()
	facts.Objects[profile.MachineConfigPoolKind()] = []*unstructured.Unstructured{pool("rendered", false)}
	facts.Objects[profile.MachineConfigKind()] = []*unstructured.Unstructured{generated}
	if got := wait.Gone(target, facts, at()); got.State != wait.Waiting || !strings.Contains(got.Message, "to be deleted") {
		t.Errorf("with what was made of it: %+v", got)
	}
	facts.Objects[profile.MachineConfigKind()] = nil
	if got := wait.Gone(target, facts, at()); got.State != wait.Waiting || !strings.Contains(got.Message, "rendered without") {
		t.Errorf("while it is rendered: %+v", got)
	}
}

// TestOlderThanTheWrite: a condition from before the write does not count. Each deadline starts at
// the write, or at the rendering after it.
func TestOlderThanTheWrite(t *testing.T) {
	descheduler := object(map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler"})
	check := func(reason string, target, live *unstructured.Unstructured, facts profile.Facts) {
		t.Helper()
		for since, want := range map[time.Duration]wait.State{time.Minute: wait.Waiting, 11 * time.Minute: wait.Failed} {
			if got := wait.For(target, live, facts, written(since)); got.State != want || want == wait.Waiting && (got.Again != 9*time.Minute || !strings.Contains(got.Message, "fails the item in 9m0s")) {
				t.Errorf("%s, written %s ago: %+v, want %s", reason, since, got, want)
			}
		}
	}
	complaint := func(kind string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "message": "because", "lastTransitionTime": now().Add(-time.Hour).Format(time.RFC3339)}}}
	}
	check("degraded operator", descheduler, object(map[string]any{"status": complaint("TargetConfigControllerDegraded")}), profile.Facts{})
	check("another controller of it", descheduler, object(map[string]any{"status": complaint("ResourceSyncDegraded")}), profile.Facts{})
	disabled := complaint("Disabled")
	disabled["phase"] = "Disabled"
	check("disabled check", object(map[string]any{"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck"}), object(map[string]any{"status": disabled}), profile.Facts{})
	check("degraded node", target(), nil, facts(pool("worker", 3, degraded("NodeDegraded", time.Hour))))
	check("not rendered", target(), nil, facts(pool("worker", 3, degraded("RenderDegraded", time.Hour))))

	late := facts(pool("worker", 3, degraded("NodeDegraded", time.Hour)))
	for _, config := range late.Objects[profile.MachineConfigKind()] {
		config.SetCreationTimestamp(metav1.NewTime(now().Add(-time.Minute)))
	}
	if got := wait.For(target(), nil, late, at()); got.State != wait.Waiting || got.Again != 9*time.Minute {
		t.Errorf("rendered a minute ago: %+v", got)
	}
}

// selected returns a MachineConfig that the pools include.
func selected(name string, arguments ...any) *unstructured.Unstructured {
	made := config(name, arguments...)
	made.SetLabels(map[string]string{"role": "worker"})
	return made
}

// TestOverridden: an item fails if a later MachineConfig overrides it, and the message names that
// MachineConfig. An earlier MachineConfig, or one with the same value, has no effect.
func TestOverridden(t *testing.T) {
	overridden := func(others ...*unstructured.Unstructured) profile.Facts {
		f := facts(pool("worker", 3, func(spec, status map[string]any) {
			for _, part := range []map[string]any{spec, status} {
				part["configuration"].(map[string]any)["name"] = "rendered-off"
			}
		}))
		f.Objects[profile.MachineConfigKind()] = append(f.Objects[profile.MachineConfigKind()], others...)
		return f
	}
	check(t, "it wins", wait.For(target(), nil, overridden(selected("99-worker-tuning", "quiet psi=0")), at()), wait.Failed, "MachineConfig 99-worker-tuning sets kernel argument psi to something else")
	check(t, "the last one counts", wait.For(target(), nil, overridden(selected("99-x", "psi=0"), selected("99-y", "psi=1")), at()), wait.Waiting, "to be rendered")
	check(t, "it loses", wait.For(target(), nil, overridden(selected("98-worker-tuning", "psi=0")), at()), wait.Waiting, "to be rendered")
	check(t, "of other pools", wait.For(target(), nil, overridden(config("99-worker-tuning", "psi=0")), at()), wait.Waiting, "to be rendered")

	// Accumulating arguments are never overridden, and each must be present.
	console := target()
	console.Object["spec"] = map[string]any{"kernelArguments": []any{"console=tty0", "hugepagesz=1G hugepages=2"}}
	f := facts(pool("worker", 3))
	f.Objects[profile.MachineConfigKind()] = []*unstructured.Unstructured{
		config("rendered-new", "console=tty0", "hugepagesz=1G hugepages=2", "console=ttyS0", "hugepagesz=2M hugepages=100"), selected("99-serial", "console=ttyS0"),
	}
	check(t, "several consoles", wait.For(console, nil, f, at()), wait.Done, "stable")
	f.Objects[profile.MachineConfigKind()][0] = config("rendered-new", "console=ttyS0")
	check(t, "another console", wait.For(console, nil, f, at()), wait.Waiting, "to be rendered")
}

// TestFilesAreOverridden: files and units are overridden like kernel arguments.
func TestFilesAreOverridden(t *testing.T) {
	unit := func(name, contents string) *unstructured.Unstructured {
		made := selected(name)
		made.Object["spec"] = map[string]any{"config": map[string]any{"systemd": map[string]any{"units": []any{map[string]any{"name": "a.service", "enabled": true, "contents": contents}}}}}
		return made
	}
	wanted := unit("90-a", "ours")
	rendered := unit("rendered-new", "theirs")
	f := facts(pool("worker", 3, func(spec, _ map[string]any) {
		spec["configuration"].(map[string]any)["source"] = []any{map[string]any{"name": "90-a"}, map[string]any{"name": "95-b"}}
	}))
	f.Objects[profile.MachineConfigKind()] = []*unstructured.Unstructured{rendered, unit("95-b", "theirs")}
	rendered.SetLabels(nil)
	for _, config := range f.Objects[profile.MachineConfigKind()] {
		profile.Summarize(config)
	}
	check(t, "its unit wins", wait.For(wanted, nil, f, at()), wait.Failed, "MachineConfig 95-b sets unit a.service to something else")
}

// TestCordoned: a pool that waits for a node reports an unavailable node, because
// MachineConfigPools do not name it.
func TestCordoned(t *testing.T) {
	cordoned := pool("worker", 3, func(_, status map[string]any) {
		status["readyMachineCount"], status["unavailableMachineCount"] = int64(2), int64(1)
		status["conditions"] = []any{map[string]any{"type": "Updated", "status": "False"}}
	})
	check(t, "it has the configuration", wait.For(target(), nil, facts(cordoned), at()), wait.Waiting, "unavailable nodes: 1, each of them restarts, is cordoned or is not ready")
}

// TestUnhealthy: for a target in effect, problems that operators report count. Rollouts that other
// users started do not.
func TestUnhealthy(t *testing.T) {
	descheduler := object(map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler"})
	check := object(map[string]any{"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck"})
	status := func(fields map[string]any) *unstructured.Unstructured {
		return object(map[string]any{"status": fields})
	}
	condition := func(kind, value string) []any {
		return []any{map[string]any{"type": kind, "status": value, "message": "because"}}
	}
	for name, c := range map[string]struct {
		target, live *unstructured.Unstructured
		facts        profile.Facts
		want         string
	}{
		"content":         {descheduler, status(map[string]any{"conditions": condition("TargetConfigControllerDegraded", "False")}), profile.Facts{}, ""},
		"not seen":        {descheduler, nil, profile.Facts{}, ""},
		"degraded":        {descheduler, status(map[string]any{"conditions": condition("TargetConfigControllerDegraded", "True")}), profile.Facts{}, "its operator is degraded: because"},
		"another kind":    {object(map[string]any{"apiVersion": "x.io/v1", "kind": "X"}), status(map[string]any{"conditions": condition("Degraded", "True")}), profile.Facts{}, "because"},
		"disabled":        {check, status(map[string]any{"phase": "Disabled", "conditions": condition("Disabled", "True")}), profile.Facts{}, "has disabled it: because"},
		"enabled":         {check, status(map[string]any{"phase": "Enabled"}), profile.Facts{}, ""},
		"rolling":         {target(), nil, facts(pool("worker", 3, rolling)), ""},
		"degraded node":   {target(), nil, facts(pool("worker", 3, degraded("NodeDegraded", time.Second))), "is NodeDegraded: because"},
		"cannot render":   {target(), nil, facts(pool("worker", 3, degraded("RenderDegraded", time.Second))), "is RenderDegraded: because"},
		"pools of others": {target(), nil, facts(pool("master", 3, degraded("NodeDegraded", time.Second), func(spec, _ map[string]any) { delete(spec, "machineConfigSelector") })), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wait.Unhealthy(c.target, c.live, c.facts); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
