package server

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/judged"
)

// judgedStorage makes endpoints of revisions over storage that writes them only as they
// were judged, and leaves other resources as they are.
type judgedStorage struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (j judgedStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	found, err := j.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && resource == v1alpha1.Resource("clusterextensionrevisions") {
		found.Decorator = judged.WithCacher()
	}
	return found, err
}
