package judged

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Revisions makes endpoints of revisions over storage that writes them only as they were
// judged, and leaves other resources as they are.
func Revisions(options generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return revisions{options}
}

type revisions struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (r revisions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	found, err := r.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && resource == v1alpha1.Resource("clusterextensionrevisions") {
		found.Decorator = WithCacher()
	}
	return found, err
}
