//go:build integration

package server_test

import (
	"crypto/sha256"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// value returns the value in the chain's ConfigMap.
func (s rolledBack) value(chain string) string {
	s.t.Helper()
	live, err := s.outsider.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Get(s.t.Context(), chain, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	n, _, _ := unstructured.NestedString(live.Object, "data", "n")
	return n
}

// freezes: a user freezes the whole cluster, and can do so only in their own name.
func (s rolledBack) freezes() {
	s.submit("frozen", 1, nil)
	s.until("frozen-1", "Succeeded", "True")
	freeze := func(author string) string {
		return s.Kubectl("create", "configmap", "penstock-freeze", "-n", "penstock-system", "--from-literal=reason=the year ends", "--from-literal=author="+author).String()
	}
	poll.Eventually(s.t, "a freeze in another name to be refused", func() (bool, string) {
		out := freeze("somebody-else")
		if !strings.Contains(out, "must be your own name") {
			// kube-apiserver does not enforce the policy yet.
			s.Kubectl("delete", "configmap", "penstock-freeze", "-n", "penstock-system")
			return false, out
		}
		return true, ""
	})
	if out := freeze("admin"); !strings.Contains(out, "created") {
		s.t.Fatalf("freezing: %s", out)
	}
	defer s.Kubectl("delete", "configmap", "penstock-freeze", "-n", "penstock-system", "--ignore-not-found")
	s.submit("frozen", 2, nil)
	s.until("frozen-2", "Progressing", "False/Frozen frozen by admin: the year ends; nothing is written")
	// Explicit deletes wait too.
	if err := s.revisions().Delete(s.t.Context(), "frozen-1", metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.until("frozen-1", "Progressing", "")
	if got := s.value("frozen"); got != "1" {
		s.t.Errorf("during the freeze, the object became %s", got)
	}
	s.MustKubectl("delete", "configmap", "penstock-freeze", "-n", "penstock-system")
	s.until("frozen-2", "Succeeded", "True")
	if got := s.value("frozen"); got != "2" {
		s.t.Errorf("after the freeze, the object is %s", got)
	}
}

// asks: Penstock asks for confirmation before it deletes many objects that the newest revision
// lacks.
func (s rolledBack) asks() {
	var many []any
	for i := range 25 {
		many = append(many, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("budget-%d", i), "namespace": "default"}})
	}
	count := func() int {
		return strings.Count(s.Kubectl("get", "configmaps", "-l", "penstock.dev/chain=budget", "-o", "name").Stdout, "budget")
	}
	s.submit("budget", 1, nil, many...)
	s.until("budget-1", "Succeeded", "True")
	s.submit("budget", 2, nil)
	s.until("budget-2", "Succeeded", "True")
	s.until("budget-1", "Stalled", "True/BudgetExceeded")
	if got := count(); got != 26 {
		s.t.Errorf("%d objects are left, want 26", got)
	}
	_, command, _ := strings.Cut(s.condition("budget-1", "Stalled"), ": kubectl ")
	s.MustKubectl(strings.Fields(command)...)
	poll.Eventually(s.t, "the objects to go", func() (bool, string) { got := count(); return got == 1, fmt.Sprint(got) })
}

// packaged returns a version of an OLM-packaged operator with 60 objects. The names of its 40 roles
// and bindings contain a hash of the version.
func packaged(version int) []any {
	hash := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, version)))[:10]
	object := func(apiVersion, kind, name string, more map[string]any) any {
		out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
		if kind != "Namespace" && kind != "CustomResourceDefinition" && !strings.HasPrefix(kind, "Cluster") {
			out["metadata"].(map[string]any)["namespace"] = "packaged"
		}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	rules := map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}}}
	binding := func(kind, name string) map[string]any {
		return map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "packaged", "namespace": "packaged"}},
		}
	}
	objects := []any{
		object("v1", "Namespace", "packaged", nil), object("v1", "ServiceAccount", "packaged", nil),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "parcels.packaged.example.com", map[string]any{"spec": map[string]any{
			"group": "packaged.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "parcels", "singular": "parcel", "kind": "Parcel", "listKind": "ParcelList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		}}),
	}
	for i := range 17 {
		objects = append(objects, object("v1", "ConfigMap", fmt.Sprintf("config-%d", i), map[string]any{"data": map[string]any{"version": fmt.Sprint(version)}}))
	}
	for i := range 10 {
		name := fmt.Sprintf("packaged-%d-%s", i, hash)
		objects = append(objects,
			object(rbac, "ClusterRole", name, rules), object(rbac, "ClusterRoleBinding", name, binding("ClusterRole", name)),
			object(rbac, "Role", name, rules), object(rbac, "RoleBinding", name, binding("Role", name)))
	}
	return objects
}

// upgrades rolls out ten versions of an operator, each with other names of its rights, without an
// acknowledgement. Three versions follow before the deletions of the version before. Penstock asks
// for confirmation only for the empty eleventh version.
func (s rolledBack) upgrades() {
	submit := func(version int, objects []any) {
		var entries []any
		for _, object := range objects {
			entries = append(entries, map[string]any{"object": object})
		}
		s.submitPhases("packaged", version, []any{map[string]any{"name": "all", "objects": entries}})
	}
	count := func(kinds string) int {
		return strings.Count(s.Kubectl("get", kinds, "-A", "-l", "penstock.dev/chain=packaged", "-o", "name").Stdout, "/")
	}
	const rights, all = "clusterroles,clusterrolebindings,roles,rolebindings", "clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts,customresourcedefinitions,configmaps"
	for version := 1; version <= 10; version++ {
		submit(version, packaged(version))
		if version >= 5 && version < 8 {
			continue // the next version follows at once
		}
		s.until(fmt.Sprintf("packaged-%d", version), "Succeeded", "True")
		poll.Eventually(s.t, fmt.Sprintf("the rights of version %d alone to be there", version), func() (bool, string) {
			n := count(rights)
			return n == 40, fmt.Sprint(n)
		})
	}
	submit(11, nil)
	s.until("packaged-11", "Succeeded", "True")
	s.until("packaged-10", "Stalled", "True/BudgetExceeded")
	if got := count(all); got != 60 {
		s.t.Errorf("the emptied version left %d objects, want 60", got)
	}
	if message := s.condition("packaged-10", "Stalled"); !strings.Contains(message, "is one of 60 objects") || !strings.Contains(message, "nothing would be left") {
		s.t.Errorf("the message is %s", message)
	}
	// Nobody answers the question: the next version lists the objects again.
	submit(12, packaged(10))
	s.until("packaged-12", "Succeeded", "True")
	s.until("packaged-10", "Stalled", "False")
}
