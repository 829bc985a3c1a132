package cel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// TestRules: the identity of a profile gets exactly the verbs on its declared kinds. Stored
// declarations of forbidden kinds give no rights.
func TestRules(t *testing.T) {
	rules := cel.Rules([]v1alpha1.DeclaredAccess{
		{Definition: "widgets.example.com", Access: v1alpha1.AccessRead}, {Definition: "gadgets.example.com", Access: v1alpha1.AccessSchema},
		{Definition: "widgets.example.com", Access: v1alpha1.AccessWrite}, {Definition: "widgets.example.com", Access: v1alpha1.AccessSchema},
		{Definition: "secrets.", Access: v1alpha1.AccessWrite}, {Definition: "clusterroles.rbac.authorization.k8s.io", Access: v1alpha1.AccessWrite},
		{Definition: "deployments.apps", Access: v1alpha1.AccessWrite}, {Definition: "configurationplans.hco.kubevirt.io", Access: v1alpha1.AccessWrite},
	})
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"widgets.example.com", "gadgets.example.com"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if rules := cel.Rules(nil); rules != nil {
		t.Errorf("%v", rules)
	}
}
