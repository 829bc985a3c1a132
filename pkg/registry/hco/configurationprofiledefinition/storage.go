package configurationprofiledefinition

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/registry/status"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
)

const (
	resource         = "configurationprofiledefinitions"
	singularResource = "configurationprofiledefinition"
)

// Schemas reads the definitions of some requirements in the cluster. It omits unreadable
// definitions.
type Schemas func(ctx context.Context, requirements []v1alpha1.DefinitionRequirement) profile.Facts

// Deps are the dependencies of NewStorage.
type Deps struct {
	Scheme *runtime.Scheme
	// OptsGetter returns the storage options for etcd.
	OptsGetter generic.RESTOptionsGetter
	// Schemas is used for warnings.
	Schemas Schemas
	// Users returns the names of the active plans of a profile. While it has active plans, the
	// definition cannot be deleted.
	Users func(ctx context.Context, profile string) ([]string, error)
	// Evaluator computes plans of a definition.
	Evaluator Evaluator
}

// Storage holds all endpoints of the resource.
type Storage struct {
	Definition *REST
	Status     *status.REST
	Evaluate   *EvaluateREST
}

// REST serves definitions.
type REST struct {
	*genericregistry.Store
	users func(ctx context.Context, profile string) ([]string, error)
}

var _ rest.ShortNamesProvider = &REST{}

// ShortNames returns the short names for kubectl.
func (*REST) ShortNames() []string { return []string{"configprofiledef", "cfgprofiledef"} }

// NewStorage returns the endpoints over a generic store.
func NewStorage(deps Deps) (*Storage, error) {
	main := &strategy{Cluster: shared.Cluster{ObjectTyper: deps.Scheme, NameGenerator: names.SimpleNameGenerator}, schemas: deps.Schemas}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &hco.ConfigurationProfileDefinition{} },
		NewListFunc:               func() runtime.Object { return &hco.ConfigurationProfileDefinitionList{} },
		DefaultQualifiedResource:  v1alpha1.Resource(resource),
		SingularQualifiedResource: v1alpha1.Resource(singularResource),
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
		},
		CreateStrategy:      main,
		UpdateStrategy:      main,
		DeleteStrategy:      main,
		ResetFieldsStrategy: main,
		TableConvertor:      table{clock: clock.RealClock{}},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: deps.OptsGetter, AttrFunc: getAttrs}); err != nil {
		return nil, fmt.Errorf("completing the store of %s: %w", resource, err)
	}
	return &Storage{
		Definition: &REST{Store: store, users: deps.Users}, Status: status.New(store, statusStrategy{main}),
		Evaluate: &EvaluateREST{store: store, evaluator: deps.Evaluator},
	}, nil
}

// Delete deletes a definition without active plans. Active plans would lose the identity that
// watches their targets.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	users, err := r.users(ctx, name)
	if err != nil {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("looking for plans of profile %s: %w", name, err))
	}
	if len(users) > 0 {
		return nil, false, apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf(
			"ConfigurationPlan %s is active and was computed from it: set its spec.action to Ignore, or delete it, first", strings.Join(users, ", ")))
	}
	return r.Store.Delete(ctx, name, validate, options)
}

// DeleteCollection deletes the definitions one after the other.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	found, err := r.List(ctx, which)
	if err != nil {
		return nil, err
	}
	deleted := &hco.ConfigurationProfileDefinitionList{}
	for _, one := range found.(*hco.ConfigurationProfileDefinitionList).Items {
		if _, _, err := r.Delete(ctx, one.Name, validate, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		deleted.Items = append(deleted.Items, one)
	}
	return deleted, nil
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	definition, ok := obj.(*hco.ConfigurationProfileDefinition)
	if !ok {
		return nil, nil, fmt.Errorf("selecting definitions: got a %T", obj)
	}
	return definition.Labels, generic.ObjectMetaFieldsSet(&definition.ObjectMeta, false), nil
}

// Unreadable returns the definition that replaces an unreadable record in lists and watches.
func Unreadable(name string, why error) runtime.Object {
	return &hco.ConfigurationProfileDefinition{ObjectMeta: objectmeta.Unreadable(name, why)}
}
