package configurationplan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/status"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
)

// StatusREST is the subresource status. A client stores manifests before it writes status. If these
// manifests are garbage-collected before the plan refers to them, the write fails with a 409, and
// the client must store them again.
type StatusREST struct{ *status.REST }

// Update writes status.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx = chainversion.Referring(ctx)
	out, created, err := r.REST.Update(ctx, name, info, create, func(ctx context.Context, obj, old runtime.Object) error {
		chainversion.From(ctx).Refers(newPacks(obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan))...)
		if update == nil {
			return nil
		}
		return update(ctx, obj, old)
	}, force, options)
	if collected := (*store.CollectedError)(nil); errors.As(err, &collected) {
		err = apierrors.NewConflict(v1alpha1.Resource(resource), name, collected)
	}
	return out, created, err
}

// newPacks returns the packs that an update newly refers to.
func newPacks(updated, old *hco.ConfigurationPlan) []string {
	known := map[string]bool{"": true, old.Status.Manifests: true, old.Status.Captured: true, definitionOf(old): true}
	var roots []string
	for _, root := range []string{updated.Status.Manifests, updated.Status.Captured, definitionOf(updated)} {
		if !known[root] {
			known[root] = true
			roots = append(roots, root)
		}
	}
	return roots
}

// definitionOf returns the reference to the plan's stored definition, or "".
func definitionOf(plan *hco.ConfigurationPlan) string {
	if plan.Status.Definition == nil {
		return ""
	}
	return plan.Status.Definition.Manifest
}
