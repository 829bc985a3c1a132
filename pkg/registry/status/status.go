// Package status implements the subresource status for all of Penstock's resources.
package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy decides which fields a write of status changes and which it cannot set.
type Strategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// REST serves the subresource status of a resource.
type REST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
	_ rest.TableConvertor      = &REST{}
)

// New returns the subresource status of a resource, over its store.
func New(resource *genericregistry.Store, strategy Strategy) *REST {
	store := *resource
	store.UpdateStrategy, store.ResetFieldsStrategy = strategy, strategy
	return &REST{store: &store}
}

// New returns an empty object of the resource.
func (r *REST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the main resource owns the store.
func (*REST) Destroy() {}

// Get returns the whole object.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes status. It never creates an object.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, update, false, options)
}

// GetResetFields returns the fields that writes of status cannot set.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints the object like the main resource.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
