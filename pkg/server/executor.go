package server

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/controller/plan"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
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

// newPlanReads makes what compares plans with the cluster for whoever asks, and what
// tells how profiles are. Both try as the reader does. What a caller is shown of a
// plan depends on his own rights; of profiles, which say how many nodes a plan would
// reboot and no content of any object, whoever may read those sees all.
func (a *api) newPlanReads(types diffschema.Schema) (*plan.Differ, *survey.Deps, error) {
	identities := a.extra.identities
	door, err := target.New(target.Options{Config: identities.config(reader()), Redactor: a.extra.redactor})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for diffs of plans: %w", err)
	}
	// It may list what profiles name, which the reader may not.
	facts, err := dynamic.NewForConfig(identities.config(executor()))
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for the facts of profiles: %w", err)
	}
	engine := rollout.New(rollout.Options{
		Reader: door, Trier: door, Names: plan.Names(), Parallel: previewsAtOnce, Redactor: a.extra.redactor,
	})
	return &plan.Differ{Authorizer: a.authorizer, Engine: engine, Packs: a.store.Packs, Schema: types, Redactor: a.extra.redactor},
		&survey.Deps{Profiles: a.extra.profiles, Client: facts, Previewer: engine}, nil
}
