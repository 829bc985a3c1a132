package guardedstorage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Resources wraps the storage of revisions and plans. A revision is written only if its chain is
// unchanged since the check. A plan is written only while its packs exist. Other resources are not
// wrapped.
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
