// Package hco puts the endpoints of the API group hco.kubevirt.io together, as the
// API server installs them.
package hco

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
)

// NewAPIGroupInfo returns the group's endpoints and how they are reached. The
// serializer must know no protobuf: our types have none.
func NewAPIGroupInfo(codecs serializer.CodecFactory, text runtime.NegotiatedSerializer, deps configurationplan.Deps) (*genericapiserver.APIGroupInfo, *configurationplan.Storage, error) {
	deps.OptsGetter = storedAsJSON{RESTOptionsGetter: deps.OptsGetter, codecs: codecs}
	storage, err := configurationplan.NewStorage(deps)
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
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served
	return &info, storage, nil
}

// storedAsJSON sets how objects of the group are stored: as JSON of v1alpha1.
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
	config.Codec = g.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	options.StorageConfig = &config
	return options, nil
}
