package serviceaccounts

import rbacv1 "k8s.io/api/rbac/v1"

// Job is something that this process does in the host in a name of its own, so
// that its rights, its part of the audit log and its priority are its own too.
type Job struct {
	// Name of its ServiceAccount, and of the ClusterRole and the
	// ClusterRoleBinding that give it its rights.
	Name string
	// Rules are those rights; none for a job that has what others bind to its ServiceAccount.
	Rules []rbacv1.PolicyRule
	// Limit says which requests of the job the host's admission allows, whatever its rights are; nil
	// allows all.
	Limit *Limit
}

// Limit says by policy what rights cannot say: that they are for dry-runs, or not for
// subresources.
type Limit struct {
	// Allows is a CEL expression that holds for what the job may do.
	Allows string
	// Message is for everything else.
	Message string
}

// whole is true for requests to objects, and not to their subresources: some of those
// act at once, and a connection may use all that is behind it.
const whole = "(!has(request.subResource) || request.subResource == '') && request.operation != 'CONNECT'"

// Jobs are all that have an identity of their own.
func Jobs() []Job { return []Job{Engine(), Reader(), Executor(), Templates()} }

// Engine is the job of writing what revisions say. A bundle may have any object, so
// its rights are on all of them; they are the verbs that the engine uses and no
// others: it impersonates nobody, and deletes one object at a time. Admission says
// who may have it do what.
//
// Roles that grant more than it has itself take escalate and bind; the other verbs
// are what API servers ask of who writes certain objects.
//
// A right to all resources is one to all subresources: to tokens of every
// ServiceAccount, and to a shell in every Pod. The limit takes these away.
func Engine() Job {
	return Job{
		Name: "penstock-engine",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"attest"}},
			{APIGroups: []string{"security.openshift.io"}, Resources: []string{"securitycontextconstraints"}, Verbs: []string{"use"}},
		},
		Limit: &Limit{Allows: whole, Message: "this identity of Penstock writes objects; it has no use for their subresources"},
	}
}

// Reader is the job of comparing revisions with the cluster for the user who asks: it
// reads objects, and has the host try what a rollout would write. A caller sees of that
// what their own rights allow, not these. It lists what the causes of objects that are
// not ready are found in, and what an upgrade of the cluster depends on.
//
// A dry-run is authorised as the write that it stands for: patch for server-side
// apply, create where the object does not exist, and for roles that give more than
// the reader has, escalate and bind. It changes nothing, and the policy sees to it
// that nothing else is done with these rights.
func Reader() Job {
	return Job{
		Name: "penstock-reader",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "patch", "create"}},
			{APIGroups: []string{""}, Resources: []string{"pods", "events", "persistentvolumeclaims"}, Verbs: []string{"list"}},
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list"}},
			{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, Verbs: []string{"list"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
		},
		Limit: &Limit{
			Allows:  "has(request.dryRun) && request.dryRun && " + whole + " && request.operation in ['CREATE', 'UPDATE']",
			Message: "this identity of Penstock reads and tries; it writes nothing",
		},
	}
}

// Executor is the job of computing and executing plans. It reads no Secrets, it
// patches and never updates, and it touches nothing but what profiles name.
func Executor() Job {
	return Job{
		Name: "penstock-executor",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"operator.openshift.io"}, Resources: []string{"kubedeschedulers"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"machineconfigs"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"machineconfigpools"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"kubeletconfigs"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"hco.kubevirt.io"}, Resources: []string{"hyperconvergeds"}, Verbs: []string{"get", "list", "watch", "patch"}},
			{APIGroups: []string{"remediation.medik8s.io"}, Resources: []string{"nodehealthchecks"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"self-node-remediation.medik8s.io"}, Resources: []string{"selfnoderemediationtemplates"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"fence-agents-remediation.medik8s.io"}, Resources: []string{"fenceagentsremediationtemplates"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"machine.openshift.io"}, Resources: []string{"machinehealthchecks"}, Verbs: []string{"get", "list", "watch"}},
		},
	}
}

// Templates is the job of reading what templates of images name. It may read nothing until an
// administrator grants it, object by object: what it reads comes to be in an image that
// others see. It writes nothing, with any grant.
func Templates() Job {
	return Job{
		Name:  "penstock-templates",
		Limit: &Limit{Allows: "false", Message: "this identity of Penstock reads; it writes nothing"},
	}
}
