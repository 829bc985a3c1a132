package wait_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/wait"
)

func now() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// target asks for psi=1 on workers.
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

// pool is one whose nodes have all they should have.
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
			check(t, c.reason, wait.For(target(), nil, c.facts, now()), c.want, c.says)
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
	check(t, "a compact cluster has workers without nodes", wait.For(target(), nil, facts(pool("worker", 0)), now()), wait.Done, "has no nodes")
}

func TestDefect09PausedPoolSaysSo(t *testing.T) {
	paused := pool("worker", 3, rolling, func(spec, _ map[string]any) { spec["paused"] = true })
	check(t, "a person has to act", wait.For(target(), nil, facts(paused), now()), wait.Paused, "set spec.paused to false")
}

func TestDefect10CustomPoolsCount(t *testing.T) {
	custom := pool("gpu", 2, rolling, func(spec, _ map[string]any) {
		spec["machineConfigSelector"] = map[string]any{"matchExpressions": []any{
			map[string]any{"key": "role", "operator": "In", "values": []any{"worker", "gpu"}}}}
	})
	check(t, "its nodes get the change too", wait.For(target(), nil, facts(pool("worker", 3), custom), now()), wait.Waiting, `"gpu"`)
}

func TestDefect11OldUpdatedIsNotBelieved(t *testing.T) {
	old := pool("worker", 3, func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"] = map[string]any{"name": "rendered-old", "source": []any{map[string]any{"name": "00-worker"}}}
		}
	})
	check(t, "Updated is about what it had before", wait.For(target(), nil, facts(old), now()), wait.Waiting, "to be rendered")
	updated := pool("worker", 3, func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"].(map[string]any)["name"] = "rendered-old"
		}
	})
	check(t, "a target that was changed is a source already", wait.For(target(), nil, facts(updated), now()), wait.Waiting, "to be rendered")
}

func TestDescheduler(t *testing.T) {
	wanted := object(map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler"})
	live := func(status string, since time.Duration) *unstructured.Unstructured {
		return object(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "TargetConfigControllerDegraded", "status": status, "message": "bad value", "lastTransitionTime": now().Add(-since).Format(time.RFC3339)}}}})
	}
	check(t, "no operator, no complaint", wait.For(wanted, object(map[string]any{}), profile.Facts{}, now()), wait.Done, "")
	check(t, "not seen yet", wait.For(wanted, nil, profile.Facts{}, now()), wait.Waiting, "")
	check(t, "healthy", wait.For(wanted, live("False", time.Hour), profile.Facts{}, now()), wait.Done, "")
	check(t, "it tries again", wait.For(wanted, live("True", time.Minute), profile.Facts{}, now()), wait.Waiting, "bad value")
	check(t, "it gave up", wait.For(wanted, live("True", time.Hour), profile.Facts{}, now()), wait.Failed, "bad value")
}

func TestGone(t *testing.T) {
	without := func(spec, status map[string]any) {
		for _, part := range []map[string]any{spec, status} {
			part["configuration"] = map[string]any{"name": "rendered-old", "source": []any{map[string]any{"name": "00-worker"}}}
		}
	}
	check(t, "the pool has it still", wait.Gone(target(), facts(pool("worker", 3)), now()), wait.Waiting, "to be rendered without")
	check(t, "nodes are on their way back", wait.Gone(target(), facts(pool("worker", 3, without, func(_, s map[string]any) { s["updatedMachineCount"] = int64(1) })), now()), wait.Waiting, "updated 1/3")
	check(t, "all are back", wait.Gone(target(), facts(pool("worker", 3, without)), now()), wait.Done, "stable and ready")
	check(t, "other kinds leave nothing behind", wait.Gone(object(map[string]any{"kind": "ConfigMap"}), profile.Facts{}, now()), wait.Done, "")
}
