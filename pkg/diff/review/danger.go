package review

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/note"
)

// danger is why a right deserves a look.
type danger struct {
	severity Severity
	why      string
}

// dangerous is a row of the table of rights by which a subject can become more
// than it is. A wildcard in the right matches every row.
type dangerous struct {
	groups, resources []string
	verbs             []string
	danger
}

func dangers() []dangerous {
	rbac := []string{rbacGroup}
	core := []string{""}
	write := []string{"create", "update", "patch"}
	return []dangerous{
		{rbac, []string{"roles", "clusterroles"}, []string{"escalate", "bind"},
			danger{note.Critical, "it can give itself every right"}},
		{core, []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"},
			danger{note.Critical, "it can act as somebody else"}},
		{core, []string{"nodes/proxy"}, []string{"get", "create"},
			danger{note.Critical, "it can run commands in every pod of a node"}},
		{core, []string{"serviceaccounts/token"}, []string{"create"},
			danger{note.Critical, "it can act as a service account"}},
		{[]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/approval", "signers"}, []string{"update", "patch", "approve", "sign"},
			danger{note.Critical, "it can issue certificates"}},
		{[]string{"privilegechecks.policy.penstock.dev"}, []string{"*"}, []string{"bypass"},
			danger{note.Critical, "its rollouts are not checked against the rights of the user who asks for them"}},
		{core, []string{"secrets"}, []string{"get", "list", "watch"},
			danger{note.Warning, "it reads Secrets"}},
		{core, []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"}, append([]string{"get"}, write...),
			danger{note.Warning, "it gets into pods"}},
		{rbac, []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}, write,
			danger{note.Warning, "it can grant rights"}},
		{[]string{"admissionregistration.k8s.io"}, []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, write,
			danger{note.Warning, "it can see and alter every request"}},
		{core, []string{"persistentvolumes"}, []string{"create"},
			danger{note.Warning, "it can mount the files of a node"}},
	}
}

// dangerOf returns why a right deserves a look; nothing for most.
func dangerOf(r right, table []dangerous) danger {
	anyVerb := r.verb == "*"
	if r.url != "" {
		if r.url == "*" {
			return danger{note.Warning, "any URL"}
		}
		return danger{}
	}
	anything := r.resource == "*" || r.resource == "*/*"
	switch {
	case anything && anyVerb && (r.group == "*" || r.group == "" || r.group == rbacGroup):
		return danger{note.Critical, "any verb on any resource"}
	case r.verb == "impersonate" || r.verb == "escalate" || r.verb == "bind":
		return danger{note.Critical, "it can get more rights than it has"}
	}
	for _, row := range table {
		if matchesRow(row, r) {
			return row.danger
		}
	}
	switch {
	case anything:
		return danger{note.Warning, "any resource"}
	case r.group == "*":
		return danger{note.Warning, "any API group"}
	case anyVerb:
		return danger{note.Warning, "any verb"}
	}
	return danger{}
}

func matchesRow(row dangerous, r right) bool {
	return (r.group == "*" || slices.Contains(row.groups, r.group)) &&
		(r.resource == "*" || slices.Contains(row.resources, "*") || slices.Contains(row.resources, r.resource)) &&
		(r.verb == "*" || slices.Contains(row.verbs, r.verb))
}
