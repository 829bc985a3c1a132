package server

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/penstock-project/penstock/pkg/controller/plan"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/rollout"
	target "github.com/penstock-project/penstock/pkg/rollout/host"
)

// executor is the job of computing and executing plans. It reads no Secrets, it
// patches and never updates, and it touches nothing but what profiles name.
func executor() job {
	return job{
		name: "penstock-executor",
		rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"operator.openshift.io"}, Resources: []string{"kubedeschedulers"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"machineconfigs"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"machineconfigpools"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"hco.kubevirt.io"}, Resources: []string{"hyperconvergeds"}, Verbs: []string{"get", "list", "watch"}},
		},
	}
}

// newPlanDiffer makes what compares plans with the cluster for whoever asks. It
// reads and tries as the reader does; what a caller is shown depends on his own
// rights.
func (a *api) newPlanDiffer(types diff.Schema) (*plan.Differ, error) {
	job, identities := reader(), a.extra.identities
	door, err := target.New(target.Options{Config: identities.config(job), Redactor: a.extra.redactor})
	if err != nil {
		return nil, fmt.Errorf("making a client for diffs of plans: %w", err)
	}
	return &plan.Differ{
		Authorizer: a.authorizer,
		Engine: rollout.New(rollout.Options{
			Reader: door, Trier: door, Names: plan.Names(), Parallel: previewsAtOnce, Redactor: a.extra.redactor,
		}),
		Packs: a.store.Packs, Schema: types, Redactor: a.extra.redactor,
	}, nil
}
