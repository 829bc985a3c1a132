package cel

import (
	"slices"
	"strings"
)

// Forbidden returns the reason why no profile may declare a kind, or "". The kind is given by the
// plural name and the group of its definition.
//
// A definition gives rights to a ServiceAccount that acts for the user who approves a plan. Kinds are
// forbidden if the ServiceAccount could use them to gain more rights or to hide its actions, even if
// the author has these rights. They are the kinds of Kubernetes (Secrets, roles, webhooks, policies,
// definitions, APIServices and workloads), similar kinds of other projects, and Penstock's kinds.
func Forbidden(plural, group string) string {
	if !strings.Contains(group, ".") || slices.Contains(kubernetesGroups(), group) {
		return "a kind of Kubernetes itself: Secrets, roles, webhooks, policies, definitions, APIServices and workloads are not allowed in profiles"
	}
	if ours := group == "hco.kubevirt.io" && strings.HasPrefix(plural, "configuration"); ours || within(group, "penstock.dev") || group == "olm.operatorframework.io" {
		return "a kind of Penstock: a profile must not change what governs it"
	}
	for _, other := range others() {
		if within(group, other.group) && (len(other.plurals) == 0 || slices.Contains(other.plurals, plural)) {
			return other.reason
		}
	}
	return ""
}

// within reports whether a group is the domain or a subdomain of it.
func within(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

// kubernetesGroups are the groups with a dot that kube-apiserver and its aggregator serve.
func kubernetesGroups() []string {
	return []string{
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
		"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
		"networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
		"storagemigration.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io",
	}
}

// other is a forbidden kind of another project; without plurals, all kinds of the group.
type other struct {
	group   string
	plurals []string
	reason  string
}

func others() []other {
	const (
		secrets   = "it has or makes Secrets"
		rights    = "it grants or denies rights"
		policies  = "it decides which objects other users may write"
		workloads = "it is a workload, or makes workloads and roles"
	)
	return []other{
		{"external-secrets.io", nil, secrets}, {"bitnami.com", []string{"sealedsecrets"}, secrets}, {"secrets-store.csi.x-k8s.io", nil, secrets},
		{"authorization.openshift.io", nil, rights}, {"security.openshift.io", nil, rights}, {"user.openshift.io", nil, rights}, {"oauth.openshift.io", nil, rights},
		{"config.openshift.io", []string{"oauths", "authentications", "apiservers"}, rights},
		{"kyverno.io", nil, policies}, {"gatekeeper.sh", nil, policies}, {"policies.kubewarden.io", nil, policies},
		{"apps.openshift.io", nil, workloads}, {"build.openshift.io", nil, workloads}, {"operators.coreos.com", nil, workloads}, {"argoproj.io", nil, workloads},
		{"fluxcd.io", nil, workloads}, {"toolkit.fluxcd.io", nil, workloads}, {"serving.knative.dev", nil, workloads}, {"tekton.dev", nil, workloads},
		{"kubevirt.io", []string{"virtualmachines", "virtualmachineinstances", "virtualmachineinstancereplicasets"}, workloads},
		{"crossplane.io", nil, workloads}, {"cluster.x-k8s.io", nil, workloads},
	}
}
