// Package hco puts the endpoints of the API group hco.kubevirt.io together, as the
// API server installs them.
package hco

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/store"
)

// Deps is what NewAPIGroupInfo needs.
type Deps struct {
	configurationplan.Deps
	// Survey is how to find out how the cluster is with regard to profiles; its
	// Plans are those that are stored here. Nil serves no configurationprofiles.
	Survey *survey.Deps
}

// NewAPIGroupInfo returns the group's endpoints and how they are reached. The
// serializer must know no protobuf: our types have none.
func NewAPIGroupInfo(codecs serializer.CodecFactory, text runtime.NegotiatedSerializer, deps Deps) (*genericapiserver.APIGroupInfo, *configurationplan.Storage, error) {
	deps.OptsGetter = storedAsJSON{RESTOptionsGetter: deps.OptsGetter, codecs: codecs}
	storage, err := configurationplan.NewStorage(deps.Deps)
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, deps.Scheme, runtime.NewParameterCodec(deps.Scheme), codecs)
	info.NegotiatedSerializer = text
	served := map[string]rest.Storage{
		"configurationplans":           storage.Plan,
		"configurationplans/status":    storage.Status,
		"configurationplans/approve":   storage.Approve,
		"configurationplans/retry":     storage.Retry,
		"configurationplans/rollback":  storage.Rollback,
		"configurationplans/manifests": storage.Manifests,
		"configurationplans/history":   storage.History,
	}
	if storage.Diff != nil {
		served["configurationplans/diff"] = storage.Diff
	}
	if deps.Survey != nil {
		looking := *deps.Survey
		looking.Plans = plansOf(storage.Plan)
		served["configurationprofiles"] = configurationprofile.NewREST(survey.New(looking))
	}
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served
	return &info, storage, nil
}

// plansOf lists all plans that are stored.
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

// storedAsJSON sets how objects of the group are stored: as JSON of v1alpha1,
// compressed.
type storedAsJSON struct {
	generic.RESTOptionsGetter
	codecs serializer.CodecFactory
}

// GetRESTOptions returns the options with our codec.
func (g storedAsJSON) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	config := *options.StorageConfig
	config.Codec = store.Compressed(g.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	options.StorageConfig = &config
	return options, nil
}
