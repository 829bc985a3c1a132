package server

import (
	"net/http"
	"path/filepath"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestAuditPolicyExample: the library accepts the example, and the example keeps bodies out of the
// log.
func TestAuditPolicyExample(t *testing.T) {
	loaded, err := policy.LoadPolicyFromFile(filepath.Join("..", "..", "artifacts", "examples", "audit-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(loaded)
	somebody, ourselves := &user.DefaultInfo{Name: "jane"}, &user.DefaultInfo{Name: user.APIServerUser}
	of := func(who user.Info, verb, group, resource, subresource string) authorizer.Attributes {
		return authorizer.AttributesRecord{User: who, Verb: verb, APIGroup: group, APIVersion: "v1alpha1", Resource: resource, Subresource: subresource, ResourceRequest: true}
	}
	for name, tc := range map[string]struct {
		reason  string
		request authorizer.Attributes
		want    auditinternal.Level
	}{
		"Create":    {"who wrote a revision is told, and not its manifests", of(somebody, "create", "olm.operatorframework.io", "clusterextensionrevisions", ""), auditinternal.LevelMetadata},
		"Manifests": {"who read manifests, too", of(somebody, "get", "olm.operatorframework.io", "clusterextensionrevisions", "manifests"), auditinternal.LevelMetadata},
		"Approve":   {"and who approved a plan", of(somebody, "create", "hco.kubevirt.io", "configurationplans", "approve"), auditinternal.LevelMetadata},
		"Status":    {"what the controllers write", of(ourselves, "patch", "olm.operatorframework.io", "clusterextensionrevisions", "status"), auditinternal.LevelMetadata},
		"Watch":     {"what they read is no news", of(ourselves, "watch", "olm.operatorframework.io", "clusterextensionrevisions", ""), auditinternal.LevelNone},
		"Probe":     {"nor are probes", authorizer.AttributesRecord{User: somebody, Verb: http.MethodGet, Path: "/readyz"}, auditinternal.LevelNone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evaluator.EvaluatePolicyRule(tc.request).Level; got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
