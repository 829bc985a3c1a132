package clusterreads

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan/livediff"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofiledefinition"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// Plans returns three parts: the differ that compares plans with the cluster, the check of
// approvers' rights, and the survey of profiles. They send dry-runs as the reader. Callers see the
// parts of a plan that their own rights allow. Users who may read a profile see all of it: its
// status has counts of nodes and no content of objects.
func (r *Reads) Plans() (*livediff.Differ, *ApproverRights, *survey.Deps, error) {
	accounts := r.Accounts
	targetClient, err := targetclient.New(targetclient.Options{Config: accounts.ConfigFor(serviceaccounts.Reader()), Redactor: r.Redactor})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a client for diffs of plans: %w", err)
	}
	// The executor may list the objects of profiles, which the reader cannot.
	facts, err := dynamic.NewForConfig(accounts.ConfigFor(serviceaccounts.Executor()))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a client for the facts of profiles: %w", err)
	}
	previewer := preview.New(preview.Options{Reader: targetClient, Trier: targetClient, Names: planwork.Names(), Parallel: previewsAtOnce})
	return &livediff.Differ{Authorizer: r.Authorizer, Previewer: previewer, Target: targetClient, Packs: r.Packs, Schema: r.Types, Redactor: r.Redactor},
		&ApproverRights{Authorizer: r.Authorizer, Kinds: targetClient},
		&survey.Deps{Profiles: r.Profiles, Client: facts, Previewer: previewer, ClientOf: r.clientsOf()}, nil
}

// clientsOf returns a function that returns one client for each user-defined profile, in its name.
func (r *Reads) clientsOf() func(name string) (dynamic.Interface, error) {
	var mu sync.Mutex
	profiles, known := r.Accounts.Profiles(), map[string]dynamic.Interface{}
	return func(name string) (dynamic.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		if found := known[name]; found != nil {
			return found, nil
		}
		made, err := dynamic.NewForConfig(profiles.ConfigFor(name))
		if err != nil {
			return nil, fmt.Errorf("making a client for the facts of profile %s: %w", name, err)
		}
		if len(known) >= maxClients {
			clear(known)
		}
		known[name] = made
		return made, nil
	}
}

const maxClients = 100

// Schemas reads the definitions that a profile's definition refers to. They are public: any user of
// the API may read them in its OpenAPI.
func (r *Reads) Schemas() (configurationprofiledefinition.Schemas, error) {
	client, err := dynamic.NewForConfig(r.Accounts.ConfigFor(serviceaccounts.Executor()))
	if err != nil {
		return nil, fmt.Errorf("making a client for the schemas of profiles: %w", err)
	}
	return func(ctx context.Context, requirements []v1alpha1.DefinitionRequirement) profile.Facts {
		wanted := make([]profile.Requirement, len(requirements))
		for i, one := range requirements {
			wanted[i] = profile.Requirement{Definition: one.Definition}
		}
		ctx, cancel := context.WithTimeout(ctx, schemasTimeout)
		defer cancel()
		facts, _ := survey.Facts(ctx, client, wanted) // an unreadable object gives no warning
		return facts
	}, nil
}

const schemasTimeout = 3 * time.Second
