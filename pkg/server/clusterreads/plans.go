package clusterreads

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan/approver"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan/livediff"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// Plans makes what compares plans with the cluster for whoever asks, what knows who may
// approve them, and what tells how profiles are. It tries as the reader does. What a caller is shown of a
// plan depends on their own rights; of profiles, which say how many nodes a plan would
// reboot and no content of any object, whoever may read those sees all.
func (r *Reads) Plans() (*livediff.Differ, *approver.Rights, *survey.Deps, error) {
	accounts := r.Accounts
	targetClient, err := targetclient.New(targetclient.Options{Config: accounts.ConfigFor(serviceaccounts.Reader()), Redactor: r.Redactor})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a client for diffs of plans: %w", err)
	}
	// It may list what profiles name, which the reader may not.
	facts, err := dynamic.NewForConfig(accounts.ConfigFor(serviceaccounts.Executor()))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a client for the facts of profiles: %w", err)
	}
	previewer := preview.New(preview.Options{Reader: targetClient, Trier: targetClient, Names: planwork.Names(), Parallel: previewsAtOnce})
	return &livediff.Differ{Authorizer: r.Authorizer, Previewer: previewer, Kinds: targetClient, Packs: r.Packs, Schema: r.Types, Redactor: r.Redactor},
		&approver.Rights{Authorizer: r.Authorizer, Kinds: targetClient},
		&survey.Deps{Profiles: r.Profiles, Client: facts, Previewer: previewer}, nil
}
