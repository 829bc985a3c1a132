package clusterextensionrollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/status"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
)

const (
	resource         = "clusterextensionrollouts"
	singularResource = "clusterextensionrollout"
)

// Deps are the dependencies of NewStorage.
type Deps struct {
	Scheme *runtime.Scheme
	// OptsGetter returns the storage options for etcd.
	OptsGetter generic.RESTOptionsGetter
	// Authorizer checks the caller's rights.
	Authorizer authorizer.UnconditionalAuthorizer
	Clock      clock.PassiveClock
}

// REST serves rollouts.
type REST struct{ *genericregistry.Store }

var _ rest.ShortNamesProvider = &REST{}

// ShortNames returns the short name for kubectl.
func (*REST) ShortNames() []string { return []string{"cero"} }

// NewStorage returns the endpoints over a generic store, by their paths.
func NewStorage(deps Deps) (map[string]rest.Storage, error) {
	main := &strategy{shared.Cluster{ObjectTyper: deps.Scheme, NameGenerator: names.SimpleNameGenerator}}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &olm.ClusterExtensionRollout{} },
		NewListFunc:               func() runtime.Object { return &olm.ClusterExtensionRolloutList{} },
		DefaultQualifiedResource:  v1alpha1.Resource(resource),
		SingularQualifiedResource: v1alpha1.Resource(singularResource),
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
		},
		CreateStrategy:      main,
		UpdateStrategy:      main,
		DeleteStrategy:      main,
		ResetFieldsStrategy: main,
		TableConvertor:      table{deps.Clock},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: deps.OptsGetter, AttrFunc: getAttrs}); err != nil {
		return nil, fmt.Errorf("completing the store of %s: %w", resource, err)
	}
	served := map[string]rest.Storage{resource: &REST{store}, resource + "/status": status.New(store, statusStrategy{main})}
	for verb, decide := range decisions() {
		served[resource+"/"+verb] = &DecisionREST{store: store, clock: deps.Clock, authorizer: deps.Authorizer, verb: verb, decide: decide}
	}
	return served, nil
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	rollout, ok := obj.(*olm.ClusterExtensionRollout)
	if !ok {
		return nil, nil, fmt.Errorf("selecting rollouts: got a %T", obj)
	}
	return rollout.Labels, generic.ObjectMetaFieldsSet(&rollout.ObjectMeta, false), nil
}

// Unreadable returns the rollout that replaces an unreadable record in lists and watches.
func Unreadable(name string, why error) runtime.Object {
	return &olm.ClusterExtensionRollout{ObjectMeta: objectmeta.Unreadable(name, why)}
}
