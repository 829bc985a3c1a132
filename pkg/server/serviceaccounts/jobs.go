package serviceaccounts

import rbacv1 "k8s.io/api/rbac/v1"

// Job is work that this process does in the host under its own identity. So its rights, its
// requests in the audit log and its priority are separate.
type Job struct {
	// Name is the name of its ServiceAccount, ClusterRole and ClusterRoleBinding.
	Name string
	// Rules are the rights of the job. A job without rules has only the rights that administrators
	// bind to its ServiceAccount.
	Rules []rbacv1.PolicyRule
	// Limit restricts the requests of the job by admission, in addition to its rights; nil allows
	// all.
	Limit *Limit
}

// Limit is a policy for restrictions that RBAC cannot express, such as only dry-runs, or no
// subresources.
type Limit struct {
	// Allows is a CEL expression that is true for allowed requests.
	Allows string
	// Message explains a refusal.
	Message string
}

// whole is true for requests to objects themselves. Some subresources act at once, and a connection
// through a subresource could be used for any purpose.
const whole = "(!has(request.subResource) || request.subResource == '') && request.operation != 'CONNECT'"

// Jobs returns the jobs that have their own identities.
func Jobs() []Job { return []Job{Engine(), Reader(), Executor(), Templates()} }

// Engine is the job that writes the objects of revisions. A bundle may contain any kind, so its
// rights cover all resources. They are limited to the verbs that the engine uses: it impersonates
// no user, and deletes one object at a time. Admission decides which users may roll out which
// objects.
//
// The engine needs escalate and bind to write roles with more rights than its own. API servers
// require the other special verbs for writing certain objects.
//
// A right to all resources includes all subresources, such as tokens of every ServiceAccount and a
// shell in every Pod. The limit forbids these.
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

// Reader is the job that compares revisions with the cluster for a user. It reads objects, and
// sends the writes of a rollout as dry-runs. The results are filtered by the caller's own rights.
// It also lists objects that explain unready objects, or that an upgrade of the cluster depends on.
//
// A dry-run needs the same rights as its write: patch for server-side apply, and create for a new
// object. A role with more rights than the reader's own needs escalate and bind. The policy allows
// these rights for dry-runs only.
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

// Executor is the job that computes and executes plans. It reads no Secrets, patches but never
// updates, and touches only the objects of profiles.
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

// Templates is the job that reads the fields of image templates. It has no rights until an
// administrator grants them, object by object. The values become part of an image reference that
// other users see. The job writes nothing, with any grant.
func Templates() Job {
	return Job{
		Name:  "penstock-templates",
		Limit: &Limit{Allows: "false", Message: "this identity of Penstock reads; it writes nothing"},
	}
}
