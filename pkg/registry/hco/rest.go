// Package hco assembles the endpoints of the API group hco.kubevirt.io for the API server.
package hco

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofiledefinition"
	"github.com/penstock-project/penstock/pkg/store"
)

// Deps are the dependencies of NewAPIGroupInfo.
type Deps struct {
	configurationplan.Deps
	// Survey compares profiles with the cluster. NewAPIGroupInfo sets its Plans to the stored
	// plans.
	Survey survey.Deps
	// Schemas is used for warnings about definitions. Evaluator computes plans of a definition.
	Schemas   configurationprofiledefinition.Schemas
	Evaluator configurationprofiledefinition.Evaluator
	// Unreadable collects unreadable records; nil collects none.
	Unreadable *store.Unreadable
}

// NewAPIGroupInfo returns the endpoints of the group.
func NewAPIGroupInfo(codecs serializer.CodecFactory, deps Deps) (*genericapiserver.APIGroupInfo, *configurationplan.Storage, error) {
	definitions, err := newDefinitions(codecs, &deps)
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	deps.OptsGetter = encoding.Stored{
		RESTOptionsGetter: deps.OptsGetter, Codecs: codecs, Version: v1alpha1.SchemeGroupVersion,
		Placeholder: configurationplan.Unreadable, Unreadable: deps.Unreadable,
	}
	storage, err := configurationplan.NewStorage(deps.Deps)
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, deps.Scheme, runtime.NewParameterCodec(deps.Scheme), codecs)
	info.NegotiatedSerializer = encoding.Text(codecs)
	served := map[string]rest.Storage{
		"configurationplans":           storage.Plan,
		"configurationplans/status":    storage.Status,
		"configurationplans/approve":   storage.Approve,
		"configurationplans/retry":     storage.Retry,
		"configurationplans/rollback":  storage.Rollback,
		"configurationplans/manifests": storage.Manifests,
		"configurationplans/export":    storage.Export,
		"configurationplans/history":   storage.History,
		"configurationplans/diff":      storage.Diff,
	}
	definitions.users = usersOf(storage.Plan)
	for name, endpoint := range definitions.served() {
		served[name] = endpoint
	}
	deps.Survey.Definitions = definitions.compiled.List
	deps.Survey.Plans = plansOf(storage.Plan)
	served["configurationprofiles"] = configurationprofile.NewREST(survey.New(deps.Survey))
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served
	return &info, storage, nil
}

// plansOf returns a function that lists all stored plans.
func plansOf(plans rest.Lister) survey.Plans {
	return func(ctx context.Context) ([]hco.ConfigurationPlan, error) {
		found, err := plans.List(ctx, &metainternalversion.ListOptions{})
		if err != nil {
			return nil, err
		}
		list, ok := found.(*hco.ConfigurationPlanList)
		if !ok {
			return nil, fmt.Errorf("listing plans: got a %T", found)
		}
		return list.Items, nil
	}
}
