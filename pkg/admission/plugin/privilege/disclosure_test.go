package privilege

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestSecrecy: the answer reveals nothing that the requester cannot read: not the objects of a
// revision, and not the content of roles in the revision or in the cluster.
func TestSecrecy(t *testing.T) {
	const revisions, manifests = "clusterextensionrevisions", "clusterextensionrevisions/manifests"
	web, powerful := deployment(t, "web"), clusterRole(t, "powerful", rule("get", "", "secrets"))
	readsOld := func(resources string) rbacv1.PolicyRule {
		return rule("get", "olm.operatorframework.io", resources, "lighthouse-1")
	}
	cases := map[string]struct {
		reason string
		may    []rbacv1.PolicyRule
		act    func(*situation) error
		says   []string
	}{
		"Prune": {
			reason: "objects that others brought",
			act:    func(w *situation) error { w.has(1, web); return w.creates(rev(2)) },
			says:   []string{"alice lacks 1 right on objects that they cannot read", "!web"},
		},
		"PruneRead": {
			reason: "are named to who may read their revision",
			may:    []rbacv1.PolicyRule{readsOld(revisions)},
			act:    func(w *situation) error { w.has(1, web); return w.creates(rev(2)) },
			says:   []string{"cannot delete deployments.apps lighthouse/web"},
		},
		"Own": {
			reason: "users know what they bring",
			act:    func(w *situation) error { w.has(1, web); return w.creates(rev(2, deployment(t, "mine"))) },
			says:   []string{"cannot create,patch deployments.apps lighthouse/mine, and lacks 1 right", "!web"},
		},
		"Rollback": {
			reason: "what comes back by a rollback was not brought by the requester",
			act:    func(w *situation) error { return w.creates(rev(2, web).rollbackOf("lighthouse-1")) },
			says:   []string{"lacks 2 rights", "!web"},
		},
		"RollbackRead": {
			reason: "it is that of the revision that it goes back to",
			may:    []rbacv1.PolicyRule{readsOld(revisions)},
			act:    func(w *situation) error { return w.creates(rev(2, web).rollbackOf("lighthouse-1")) },
			says:   []string{"cannot create,patch deployments.apps lighthouse/web", "!lacks"},
		},
		"Rules": {
			reason: "what is in a role takes the right to read manifests",
			may:    []rbacv1.PolicyRule{readsOld(revisions)},
			act:    func(w *situation) error { return w.creates(rev(2, powerful).rollbackOf("lighthouse-1")) },
			says:   []string{"clusterroles.rbac.authorization.k8s.io powerful, and lacks 1 right", "!secrets"},
		},
		"RulesRead": {
			reason: "which is enough",
			may:    []rbacv1.PolicyRule{readsOld(revisions), readsOld(manifests)},
			act:    func(w *situation) error { return w.creates(rev(2, powerful).rollbackOf("lighthouse-1")) },
			says:   []string{"get secrets (granted by ClusterRole powerful)", "!lacks"},
		},
		"RulesByDigest": {
			reason: "so does naming the role by its digest",
			may:    []rbacv1.PolicyRule{readsOld(revisions)},
			act:    func(w *situation) error { w.borrow("lighthouse-1", powerful); return w.creates(rev(2, powerful)) },
			says:   []string{"clusterroles.rbac.authorization.k8s.io powerful, and lacks 1 right", "!secrets"},
		},
		"RulesByDigestRead": {
			reason: "with the right to the manifests it is no secret",
			may:    []rbacv1.PolicyRule{readsOld(manifests)},
			act:    func(w *situation) error { w.borrow("lighthouse-1", powerful); return w.creates(rev(2, powerful)) },
			says:   []string{"get secrets (granted by ClusterRole powerful)", "!lacks"},
		},
		"LiveRole": {
			reason: "a binding does not tell what is in a role of the cluster",
			act: func(w *situation) error {
				w.roles["ClusterRole /powerful"] = []rbacv1.PolicyRule{rule("get", "", "secrets")}
				return w.creates(rev(1, clusterRoleBinding(t, "b", "powerful")))
			},
			says: []string{"clusterrolebindings.rbac.authorization.k8s.io b, and lacks 1 right", "!secrets"},
		},
		"Refusal": {
			reason: "nor which object is of a kind that nobody may have written",
			act: func(w *situation) error {
				return w.creates(rev(2, object(t, "certificates.k8s.io/v1", "CertificateSigningRequest", "", "node", nil)).rollbackOf("lighthouse-1"))
			},
			says: []string{"lacks 3 rights", "!CertificateSigningRequest"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := emptyCluster(t).may("", tc.may...)
			want(t, tc.reason, tc.act(w), forbidden, tc.says...)
		})
	}
}
