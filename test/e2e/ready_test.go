//go:build integration

package e2e_test

import "strings"

// upgradeReadiness: readiness reads the current state of the cluster, if the caller has the right
// to list it.
func upgradeReadiness(w sharedPlane) {
	w.roll(revision("ready", 1).Phase("deploy",
		object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "floats.ready.example.com"},
			"spec": object{
				"group": "ready.example.com", "scope": "Cluster", "names": object{"plural": "floats", "kind": "Float"},
				"versions": []any{
					object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}},
					object{"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}},
				},
			},
		},
		object{
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"name": "ready", "namespace": "default"},
			"spec": object{"minAvailable": 1, "selector": object{"matchLabels": object{"app": "ready"}}},
		},
		object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": object{"name": "ready.example.com"},
			"webhooks": []any{object{
				"name": "floats.ready.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
				"clientConfig": object{"service": object{"namespace": "default", "name": "nobody"}},
				"rules":        []any{object{"apiGroups": []any{"ready.example.com"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"floats"}}},
			}},
		}))
	w.MustKubectl("patch", "crd", "floats.ready.example.com", "--subresource=status", "--type=merge", "-p", `{"status":{"storedVersions":["v1beta1","v1"]}}`)
	// This Pod is in no manifest and on no node, so it is not healthy and the disruption budget
	// allows no eviction.
	w.MustKubectl("run", "ready", "--namespace=default", "--image=registry.invalid/ready", "--labels=app=ready")

	path := "/apis/olm.operatorframework.io/v1alpha1/upgradereadinesses/next?extension=ready"
	stdout, _ := w.eventually(func() (string, string) {
		out := w.Kubectl("get", "--raw", path)
		return out.Stdout, out.Stderr
	}, func(stdout string) bool { return strings.Contains(stdout, "0 of 1 Pods are healthy") })
	w.says(stdout,
		`"field":"status.storedVersions","evidence":"objects may be stored in version v1beta1, which is deprecated or not served`,
		`"field":"status.disruptionsAllowed"`, "its Service default/nobody has no ready endpoint", `"verdict":"NothingFound"`)

	// The right to readiness does not include the right to the objects behind it.
	w.reader("ready-reader")
	w.MustKubectl("create", "clusterrole", "ready-asker", "--verb=get", "--resource=upgradereadinesses.olm.operatorframework.io")
	w.MustKubectl("create", "clusterrolebinding", "ready-asker", "--clusterrole=ready-asker", "--user=ready-reader")
	user := w.User("ready-reader")
	stdout, _ = w.eventually(func() (string, string) {
		out := user.Kubectl("get", "--raw", path)
		return out.Stdout, out.Stderr
	}, func(stdout string) bool { return strings.Contains(stdout, `"revision":"ready-1"`) })
	w.says(stdout, `"verdict":"Unknown"`, "you cannot list customresourcedefinitions.apiextensions.k8s.io", "you cannot list poddisruptionbudgets.policy",
		"you cannot list validatingwebhookconfigurations.admissionregistration.k8s.io")
	for _, hidden := range []string{"storedVersions", "disruptionsAllowed", "no ready endpoint"} {
		if strings.Contains(stdout, hidden) {
			w.t.Errorf("%q is shown:\n%s", hidden, stdout)
		}
	}
}
