package rollout_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// value of the ConfigMap of a chain.
func (s rolledBack) value(chain string) string {
	return strings.TrimSpace(s.Kubectl("get", "configmap", chain, "-o", "jsonpath={.data.n}").Stdout)
}

// freezes the whole cluster, in the name of whoever does it and no other.
func (s rolledBack) freezes() {
	s.submit("frozen", 1, nil)
	s.until("frozen-1", "Succeeded", "True")
	freeze := func(author string) string {
		return s.Kubectl("create", "configmap", "penstock-freeze", "-n", "penstock-system", "--from-literal=reason=the year ends", "--from-literal=author="+author).String()
	}
	eventually(s.t, "a freeze in another name to be refused", func() (bool, string) {
		out := freeze("somebody-else")
		if !strings.Contains(out, "must be your own name") {
			// The host has not heard of the policy yet.
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
	if err := s.outsider.Resource(revisionsOf()).Delete(s.t.Context(), "frozen-1", metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.until("frozen-1", "Progressing", "")
	if got := s.value("frozen"); got != "1" {
		s.t.Errorf("while it is frozen, the object became %s", got)
	}
	s.MustKubectl("delete", "configmap", "penstock-freeze", "-n", "penstock-system")
	s.until("frozen-2", "Succeeded", "True")
	if got := s.value("frozen"); got != "2" {
		s.t.Errorf("behind the freeze, the object is %s", got)
	}
}

// asks before it deletes many objects that a revision does not list any more.
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
	eventually(s.t, "the objects to go", func() (bool, string) { got := count(); return got == 1, fmt.Sprint(got) })
}
