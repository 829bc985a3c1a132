package server

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcoinstall "github.com/penstock-project/penstock/pkg/apis/hco/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/server/registration"
)

func servedGroups() sets.Set[string] {
	groups := sets.New[string]()
	for _, version := range registration.Versions() {
		groups.Insert(version.Group)
	}
	return groups
}

// newScheme returns the scheme of the served API, with the types that every API needs for lists,
// watches and options.
func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	hcoinstall.Install(scheme)
	utilruntime.Must(catalogv1alpha1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	// Lists are written item by item. A list of thousands of revisions in one piece of JSON would
	// take twice its size in memory, until the client has read it.
	return scheme, serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON())
}
