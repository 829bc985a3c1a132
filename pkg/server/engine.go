package server

import rbacv1 "k8s.io/api/rbac/v1"

// engine is the job of writing what revisions say. A bundle may have any object, so
// its rights are on all of them; they are the verbs that the engine uses and no
// others: it impersonates nobody, and deletes one object at a time. Who may have what
// done by it is for admission to say.
//
// Roles that grant more than it has itself take escalate and bind; the other verbs
// are what API servers ask of who writes certain objects.
//
// A right to all resources is one to all subresources: to tokens of every
// ServiceAccount, and to a shell in every Pod. The limit takes these away.
func engine() job {
	return job{
		name: "penstock-engine",
		rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"attest"}},
			{APIGroups: []string{"security.openshift.io"}, Resources: []string{"securitycontextconstraints"}, Verbs: []string{"use"}},
		},
		limit: &limit{allows: whole, message: "this identity of Penstock writes objects; it has no use for their subresources"},
	}
}
