package review

import (
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/note"
)

// danger is the severity of a right and the reason for it.
type danger struct {
	severity Severity
	why      string
}

// dangerous is a row of the table of rights with which a subject can extend its own power. A
// wildcard in the right matches every row.
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
		{[]string{"", "authentication.k8s.io"}, []string{"users", "groups", "serviceaccounts", "uids", "nodes", "userextras/*"},
			[]string{"impersonate", "impersonate:user-info", "impersonate:serviceaccount", "impersonate:arbitrary-node", "impersonate:associated-node"},
			danger{note.Critical, "it can act as another user"}},
		{core, []string{"nodes/proxy"}, []string{"get", "create"},
			danger{note.Critical, "it can run commands in every pod of a node"}},
		{core, []string{"serviceaccounts/token"}, []string{"create"},
			danger{note.Critical, "it can act as a service account"}},
		{[]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/approval", "signers"}, []string{"update", "patch", "approve", "sign"},
			danger{note.Critical, "it can issue certificates"}},
		{[]string{"privilegechecks.policy.penstock.dev"}, []string{"*"}, []string{"bypass"},
			danger{note.Critical, "its rollouts are not checked against the rights of the user who asks for them"}},
		// The API server answers each of these requests with the Secret, also a deletion in the
		// foreground.
		{core, []string{"secrets"}, []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"},
			danger{note.Warning, "it reads Secrets"}},
		{core, []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"}, append([]string{"get"}, write...),
			danger{note.Warning, "it gets into pods"}},
		{rbac, []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}, write,
			danger{note.Warning, "it can grant rights"}},
		{[]string{"admissionregistration.k8s.io"},
			[]string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, write,
			danger{note.Warning, "it can see and alter every request"}},
		{[]string{"admissionregistration.k8s.io"}, []string{"*"}, append([]string{"delete", "deletecollection"}, write...),
			danger{note.Warning, "it can let through requests that admission refuses"}},
		{[]string{"apiregistration.k8s.io"}, []string{"apiservices"}, write,
			danger{note.Warning, "it can serve an API in place of another server"}},
		{core, []string{"persistentvolumes"}, []string{"create"},
			danger{note.Warning, "it can mount the files of a node"}},
	}
}

// dangerOf returns the danger of a right, with the reason; the zero value for most rights.
func dangerOf(r right, table []dangerous) danger {
	anyVerb := r.verb == "*"
	if r.url != "" {
		if path, wild := strings.CutSuffix(r.url, "*"); wild && strings.TrimRight(path, "*/") == "" {
			return danger{note.Warning, "any URL"}
		}
		return danger{}
	}
	anything := r.resource == "*"
	if anything && anyVerb && (r.group == "*" || r.group == "" || r.group == rbacGroup) {
		return danger{note.Critical, "any verb on any resource"}
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
	case strings.HasPrefix(r.verb, "impersonate-on:"):
		return danger{note.Warning, "it can do that as another user"}
	}
	return danger{}
}

// matchesRow reports whether a right allows a request of a row, according to the RBAC authorizer.
func matchesRow(row dangerous, r right) bool {
	return (r.group == "*" || slices.Contains(row.groups, r.group)) &&
		slices.ContainsFunc(row.resources, func(resource string) bool { return overlap(r.resource, resource) }) &&
		(r.verb == "*" || slices.Contains(row.verbs, r.verb))
}

// overlap reports whether the resource of a rule allows the resource of a row. In a rule, * is
// every resource and subresource, and */token is that subresource of every resource. In a row,
// userextras/* is every subresource.
func overlap(rule, row string) bool {
	if rule == "*" || row == "*" || rule == row {
		return true
	}
	resource, subresource, nested := strings.Cut(rule, "/")
	of, sub, rowNested := strings.Cut(row, "/")
	return nested && rowNested && (resource == "*" || resource == of) && (sub == "*" || sub == subresource)
}
