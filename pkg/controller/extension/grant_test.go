package extension

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

func phasesOf(t *testing.T, manifests ...string) []source.Phase {
	t.Helper()
	var objects []manifest.Object
	for _, text := range manifests {
		object, err := digester().FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	phases, err := source.Sort(objects)
	if err != nil {
		t.Fatal(err)
	}
	return phases
}

// TestGrant: one rule for each resource, by name, and the rights that roles grant. Rights in a
// namespace are granted only there.
func TestGrant(t *testing.T) {
	phases := phasesOf(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"n"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"m"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"l","namespace":"n"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	rules := map[string][]string{}
	for namespace, found := range grants(phases) {
		for _, rule := range found {
			content, err := json.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			rules[namespace] = append(rules[namespace], string(content))
		}
	}
	want := map[string][]string{
		"": {
			`{"verbs":["create"],"apiGroups":["olm.operatorframework.io"],"resources":["clusterextensionrevisions"]}`,
			`{"verbs":["create","patch","delete"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":["r"]}`,
			`{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`,
		},
		"m": {`{"verbs":["create","patch","delete"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"]}`},
		"n": {
			`{"verbs":["create","patch","delete"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a","b"]}`,
			`{"verbs":["create","patch","delete"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["l"]}`,
			`{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`,
		},
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
	for who, subject := range map[string]string{
		"system:serviceaccount:lamps:installer": `"subjects":[{"kind":"ServiceAccount","name":"installer","namespace":"lamps"}]`,
		"alice'; rm -rf /":                      `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice'; rm -rf /"}]`,
		"x\nEOF\nrm -rf /":                      `"name":"x\nEOF\nrm -rf /"`,
	} {
		text := grant("lamp", who, phases)
		_, script, _ := strings.Cut(text, "\nkubectl apply -f - <<'EOF'\n")
		content, end, _ := strings.Cut(script, "\nEOF")
		var list struct{ Items []struct{ Kind string } }
		if err := json.Unmarshal([]byte(content), &list); err != nil || end != "" || !strings.Contains(content, subject) {
			t.Errorf("%v: it says %s", err, text)
		}
		var kinds []string
		for _, one := range list.Items {
			kinds = append(kinds, one.Kind)
		}
		if got := strings.Join(kinds, " "); got != "ClusterRole ClusterRoleBinding Role RoleBinding Role RoleBinding" {
			t.Errorf("it grants by %s", got)
		}
	}
	if text := grant(strings.Repeat("x", longestGrant), "alice", phases); text != "" {
		t.Errorf("a condition has no room for it: %d bytes", len(text))
	}
}
