package hco

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofiledefinition"
)

// definitions holds the endpoints of definitions, and the functions on definitions for plans and
// profiles.
type definitions struct {
	storage  *configurationprofiledefinition.Storage
	compiled *configurationprofiledefinition.Compiled
	// users returns the active plans of a profile. It is set after the plans are created.
	users func(ctx context.Context, profile string) ([]string, error)
}

// newDefinitions creates the endpoints of definitions, before the endpoints of plans.
func newDefinitions(codecs serializer.CodecFactory, deps *Deps) (*definitions, error) {
	d := &definitions{}
	storage, err := configurationprofiledefinition.NewStorage(configurationprofiledefinition.Deps{
		Scheme: deps.Scheme,
		OptsGetter: encoding.Stored{
			RESTOptionsGetter: deps.OptsGetter, Codecs: codecs, Version: v1alpha1.SchemeGroupVersion,
			Placeholder: configurationprofiledefinition.Unreadable, Unreadable: deps.Unreadable,
		},
		Schemas: deps.Schemas, Evaluator: deps.Evaluator,
		Users: func(ctx context.Context, profile string) ([]string, error) { return d.users(ctx, profile) },
	})
	if err != nil {
		return nil, err
	}
	d.storage, d.compiled = storage, configurationprofiledefinition.NewCompiled(storage.Definition)
	deps.Deps.Definitions = d.compiled.Get
	return d, nil
}

func (d *definitions) served() map[string]rest.Storage {
	return map[string]rest.Storage{
		"configurationprofiledefinitions":          d.storage.Definition,
		"configurationprofiledefinitions/status":   d.storage.Status,
		"configurationprofiledefinitions/evaluate": d.storage.Evaluate,
	}
}

// usersOf returns a function that finds the active plans of a profile.
func usersOf(plans rest.Lister) func(ctx context.Context, profile string) ([]string, error) {
	list := plansOf(plans)
	return func(ctx context.Context, profile string) ([]string, error) {
		all, err := list(ctx)
		if err != nil {
			return nil, err
		}
		var users []string
		for _, plan := range all {
			if string(plan.Spec.Profile) == profile && plan.Spec.Action != hco.ActionIgnore && plan.DeletionTimestamp == nil &&
				plan.Status.Definition != nil && governance.Active(v1alpha1.Phase(plan.Status.Phase)) {
				users = append(users, plan.Name)
			}
		}
		return users, nil
	}
}
