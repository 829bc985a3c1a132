// Package catalog assembles the endpoints of the API group catalog.penstock.dev for the API server.
package catalog

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/catalog/catalogpackage"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
)

// Deps are the dependencies of NewAPIGroupInfo.
type Deps struct {
	Scheme *runtime.Scheme
	// Catalogs reads the catalogs.
	Catalogs catalogpackage.Inventory
	// Installed returns installed versions. Asking returns the extensions that ask for a package.
	Installed catalogpackage.Installed
	Asking    catalogpackage.Asking
}

// NewAPIGroupInfo returns the endpoints of the group. They store nothing.
func NewAPIGroupInfo(codecs serializer.CodecFactory, deps Deps) *genericapiserver.APIGroupInfo {
	storage := catalogpackage.NewStorage(deps.Catalogs, deps.Installed)
	info := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, deps.Scheme, runtime.NewParameterCodec(deps.Scheme), codecs)
	info.NegotiatedSerializer = encoding.Text(codecs)
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"catalogpackages":          storage.Package,
		"catalogpackages/versions": storage.Versions,
		"catalogpackages/graph":    storage.Graph,
		"catalogpackages/icon":     storage.Icon,
		"catalogpackages/upgrades": catalogpackage.NewUpgrades(deps.Catalogs, deps.Asking),
	}
	return &info
}
