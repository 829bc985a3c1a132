//go:build integration

package e2e_test

import "fmt"

// probes: probes of the spec gate the next phase.
func probes(w sharedPlane) {
	ns := w.namespace("probes")
	in := "--namespace=" + ns
	kind := func(group, kind string) map[string]any {
		return map[string]any{"groupKind": map[string]any{"group": group, "kind": kind}}
	}
	probe := func(selector map[string]any, assertion string, content map[string]any) map[string]any {
		return map[string]any{"selector": selector, "assertions": []any{map[string]any{assertion: content}}}
	}
	lamp := instance("Lamp", ns, "lamp")
	lamp["spec"] = map[string]any{"watts": 40}
	labelled := configMap(ns, "labelled", "x=1")
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"gate": "yes"}
	d := revision("probes", 1).
		Phase("crds", definition("Lamp")).
		Phase("condition", lamp).
		Phase("value", configMap(ns, "value", "x=1").Labelled("approved", "no")).
		Phase("cel", labelled).
		Phase("last", configMap(ns, "last", "x=1")).
		With("progressionProbes", []any{
			probe(kind("lamps.example.com", "Lamp"), "conditionEqual", map[string]any{"type": "Lit", "status": "True"}),
			probe(kind("lamps.example.com", "Lamp"), "fieldsEqual", map[string]any{"fieldA": "spec.watts", "fieldB": "status.watts"}),
			probe(map[string]any{"groupKind": map[string]any{"group": "", "kind": "ConfigMap"},
				"labelSelector": map[string]any{"matchLabels": map[string]any{"approved": "no"}}}, "fieldValue", map[string]any{"fieldPath": "data.gate", "value": "open"}),
			probe(map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"gate": "yes"}}}, "cel",
				map[string]any{"expression": "has(self.data.approved) && self.data.approved == 'by-me'", "message": "somebody has to approve it"}),
		})
	w.MustKubectlInput(d.String(), "create", "-f", "-")

	status := func(content string) {
		w.t.Helper()
		w.MustKubectl("patch", "lamp", "lamp", in, "--subresource=status", "--type=merge", "-p", `{"status":`+content+`}`)
	}
	lit := func(watts int, status, message string) string {
		return fmt.Sprintf(`{"watts":%d,"conditions":[{"type":"Lit","status":%q,"observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Seen","message":%q}]}`,
			watts, status, message)
	}
	w.condition("probes-1", "Progressing", "True", "phase condition", "Lamp.lamps.example.com probes/lamp", "status.watts is not set")
	w.absent("configmap", "value", in)
	status(lit(40, "False", "no oil"))
	w.condition("probes-1", "Progressing", "True", "Lamp.lamps.example.com probes/lamp", "Lit", "no oil")
	status(lit(30, "True", ""))
	w.condition("probes-1", "Progressing", "True", "Lamp.lamps.example.com probes/lamp", "spec.watts", "status.watts")
	w.absent("configmap", "value", in)
	status(lit(40, "True", ""))

	w.condition("probes-1", "Progressing", "True", "phase value", "ConfigMap probes/value", "data.gate")
	w.absent("configmap", "labelled", in)
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"open"}}`)

	w.condition("probes-1", "Progressing", "True", "phase cel", "ConfigMap probes/labelled", "somebody has to approve it")
	w.absent("configmap", "last", in)
	w.MustKubectl("patch", "configmap", "labelled", in, "--type=merge", "-p", `{"data":{"approved":"by-me"}}`)
	w.succeeded("probes-1")
	w.MustKubectl("get", "configmap", "last", in)

	// After the rollout, a probe decides the condition Available.
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"shut"}}`)
	w.condition("probes-1", "Available", "False", "ConfigMap probes/value")
	w.condition("probes-1", "Progressing", "False")
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"open"}}`)
	w.condition("probes-1", "Ready", "True")
}
