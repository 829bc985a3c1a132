package guardedstorage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Resources makes endpoints of revisions over storage that writes them only as they were
// judged, and endpoints of plans over storage that writes them only while the packs that
// they come to refer to are there. Other resources are as they are.
func Resources(options generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return resources{options}
}

type resources struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (r resources) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	found, err := r.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && (resource == olmv1alpha1.Resource("clusterextensionrevisions") || resource == hcov1alpha1.Resource("configurationplans")) {
		found.Decorator = WithCacher()
	}
	return found, err
}
