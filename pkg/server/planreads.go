package server

import (
	"fmt"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/controller/plan"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// newPlanReads makes what compares plans with the cluster for whoever asks, and what
// tells how profiles are. Both try as the reader does. What a caller is shown of a
// plan depends on their own rights; of profiles, which say how many nodes a plan would
// reboot and no content of any object, whoever may read those sees all.
func (a *api) newPlanReads(types diffschema.Schema) (*plan.Differ, *survey.Deps, error) {
	accounts := a.extra.accounts
	door, err := targetclient.New(targetclient.Options{Config: accounts.ConfigFor(serviceaccounts.Reader()), Redactor: a.extra.redactor})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for diffs of plans: %w", err)
	}
	// It may list what profiles name, which the reader may not.
	facts, err := dynamic.NewForConfig(accounts.ConfigFor(serviceaccounts.Executor()))
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for the facts of profiles: %w", err)
	}
	previewer := preview.New(preview.Options{Reader: door, Trier: door, Names: plan.Names(), Parallel: previewsAtOnce})
	return &plan.Differ{Authorizer: a.authorizer, Previewer: previewer, Kinds: door, Packs: a.store.Packs, Schema: types, Redactor: a.extra.redactor},
		&survey.Deps{Profiles: a.extra.profiles, Client: facts, Previewer: previewer}, nil
}
