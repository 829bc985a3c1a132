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

// TestGrant: one rule for each resource, by name, and what roles hand on.
func TestGrant(t *testing.T) {
	phases := phasesOf(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"n"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	var rules []string
	for _, rule := range grants(phases) {
		content, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, string(content))
	}
	want := []string{
		`{"verbs":["create"],"apiGroups":["olm.operatorframework.io"],"resources":["clusterextensionrevisions"]}`,
		`{"verbs":["create","patch","delete"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a","b"]}`,
		`{"verbs":["create","patch","delete"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":["r"]}`,
		`{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`,
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
	if text := grant("lamp", "system:serviceaccount:lamps:installer", phases); !strings.Contains(text, `"name":"install-lamp"`) || !strings.Contains(text, "\nkubectl apply -f - <<'EOF'\n") || !strings.HasSuffix(text, "\nEOF\nkubectl create clusterrolebinding install-lamp --clusterrole=install-lamp --serviceaccount=lamps:installer") {
		t.Errorf("it says %s", text)
	}
	if text := grant("lamp", "alice'; rm -rf /", phases); !strings.HasSuffix(text, `--clusterrole=install-lamp '--user=alice'\''; rm -rf /'`) {
		t.Errorf("a shell takes more than a name from it: %s", text)
	}
	if text := grant(strings.Repeat("x", longestGrant), "alice", phases); text != "" {
		t.Errorf("a condition has no room for it: %d bytes", len(text))
	}
}
