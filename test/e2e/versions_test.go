//go:build integration

package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
)

// hashedNames upgrades an operator of 60 objects whose roles and bindings have other names in
// each version, as those packaged for OLM have. Nobody acknowledges anything, and nothing asks
// for it, until a version comes that is empty by mistake. FULL=1 has ten versions.
func hashedNames(w sharedPlane) {
	const extension = "hashednames"
	last := 3
	if os.Getenv("FULL") == "1" {
		last = 10
	}
	for version := 1; version <= last; version++ {
		w.roll(revision(extension, version).Phase("all", hashed(extension, version)...))
		if version > 1 {
			w.condition(fmt.Sprintf("%s-%d", extension, version-1), "Ready", "True", "no object in the cluster belongs to it any more")
		}
		w.onlyHashed(extension, version)
		w.unasked(extension)
	}

	w.roll(revision(extension, last+1).Phase("all"))
	w.condition(fmt.Sprintf("%s-%d", extension, last), "Stalled", "True", "is one of 60 objects", "nothing would be left", "acknowledge-deletion=")
	w.says(w.read(`.status.conditions[?(@.type=="Stalled")].reason`, "cer", fmt.Sprintf("%s-%d", extension, last)), "BudgetExceeded")
	w.onlyHashed(extension, last)

	// The next version has the objects again, so there is nothing to ask any more.
	w.roll(revision(extension, last+2).Phase("all", hashed(extension, last)...))
	w.condition(fmt.Sprintf("%s-%d", extension, last), "Stalled", "False")
	w.onlyHashed(extension, last)
}

// hashed are the 60 objects of one version: 40 roles and bindings of new names, 20 that stay.
func hashed(extension string, version int) []object {
	const group = "rbac.authorization.k8s.io"
	hash := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, version)))[:10]
	objects := []object{
		manifest("v1", "Namespace", "", extension), manifest("v1", "ServiceAccount", extension, extension), definition("Hashedname"),
		deployment(extension, "server", fmt.Sprintf("example.com/server:v%d", version)),
	}
	for i := range 16 {
		objects = append(objects, configMap(extension, fmt.Sprintf("config-%d", i), fmt.Sprintf("version=%d", version)))
	}
	for i := range 10 {
		name := fmt.Sprintf("%s-%d-%s", extension, i, hash)
		for _, kind := range []string{"ClusterRole", "Role"} {
			namespace := extension
			if kind == "ClusterRole" {
				namespace = ""
			}
			role, binding := manifest(group+"/v1", kind, namespace, name), manifest(group+"/v1", kind+"Binding", namespace, name)
			role["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}}
			binding["roleRef"] = map[string]any{"apiGroup": group, "kind": kind, "name": name}
			binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": extension, "namespace": extension}}
			objects = append(objects, role, binding)
		}
	}
	return objects
}

// onlyHashed fails unless exactly the objects of one version are there.
func (w sharedPlane) onlyHashed(extension string, version int) {
	w.t.Helper()
	kinds := "namespaces,serviceaccounts,customresourcedefinitions,deployments,configmaps,clusterroles,clusterrolebindings,roles,rolebindings"
	out := w.MustKubectl("get", kinds, "--all-namespaces", "--selector=penstock.dev/chain="+extension, "--output=name")
	found := map[string]bool{}
	for _, line := range strings.Fields(out) {
		resource, name, _ := strings.Cut(line, "/")
		kind, _, _ := strings.Cut(resource, ".")
		found[kind+"/"+name] = true
	}
	wanted := hashed(extension, version)
	for _, o := range wanted {
		name := strings.ToLower(o["kind"].(string)) + "/" + o["metadata"].(map[string]any)["name"].(string)
		if !found[name] {
			w.t.Errorf("of version %d %s is missing", version, name)
		}
		delete(found, name)
	}
	for name := range found {
		w.t.Errorf("%s is not of version %d, but there", name, version)
	}
}

// unasked fails when a revision of an extension asks or asked whether objects may go, or when
// somebody acknowledged it.
func (w sharedPlane) unasked(extension string) {
	w.t.Helper()
	said := w.MustKubectl("get", "cer", "--selector=penstock.dev/chain="+extension, "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations} {.status}{'\\n'}{end}") +
		w.MustKubectl("get", "events", "--namespace=default", "--output=jsonpath={range .items[*]}{.involvedObject.name} {.message}{'\\n'}{end}")
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, extension+"-") && (strings.Contains(line, "BudgetExceeded") || strings.Contains(line, "acknowledge-deletion")) {
			w.t.Errorf("nothing should ask or be acknowledged: %s", line)
		}
	}
}
