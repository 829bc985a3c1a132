package clusterextensionrollout

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
)

// strategy defines a well-formed rollout.
type strategy struct{ shared.Cluster }

var (
	_ rest.RESTCreateStrategy  = &strategy{}
	_ rest.RESTUpdateStrategy  = &strategy{}
	_ rest.RESTDeleteStrategy  = &strategy{}
	_ rest.ResetFieldsStrategy = &strategy{}
)

// GetResetFields returns the fields that writes of the main resource cannot set.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion, fieldpath.MakePathOrDie("status"))
}

// PrepareForCreate removes status.
func (*strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	rollout := obj.(*olm.ClusterExtensionRollout)
	rollout.Generation, rollout.Status = 1, olm.ClusterExtensionRolloutStatus{}
}

// PrepareForUpdate keeps status.
func (*strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	rollout, stored := obj.(*olm.ClusterExtensionRollout), old.(*olm.ClusterExtensionRollout)
	rollout.Status, rollout.Generation = *stored.Status.DeepCopy(), stored.Generation
}

// byPenstock refuses a write that Penstock does not make in its own name.
func byPenstock(ctx context.Context, path *field.Path, what string) field.ErrorList {
	if who, _ := genericrequest.UserFrom(ctx); request.IsInternal(ctx, who) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, what)}
}

// Validate returns the errors in a new rollout.
func (*strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	rollout := obj.(*olm.ClusterExtensionRollout)
	if errs := byPenstock(ctx, field.NewPath("spec"), "only Penstock creates rollouts: create or change a ClusterExtensionSet"); len(errs) > 0 {
		return errs
	}
	if errs := objectmeta.ValidateSize(&rollout.ObjectMeta, nil, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&rollout.ObjectMeta, false, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	external, err := versioned(rollout)
	if err == nil {
		err = extensionrollout.Plan(&external.Spec).Validate()
	}
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec"), rollout.Name, err.Error()))
	}
	return objectmeta.Bounded(errs)
}

// ValidateUpdate refuses changes of the spec: users approved this spec.
func (*strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	rollout, stored := obj.(*olm.ClusterExtensionRollout), old.(*olm.ClusterExtensionRollout)
	if errs := objectmeta.ValidateSize(&rollout.ObjectMeta, &stored.ObjectMeta, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&rollout.ObjectMeta, &stored.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(rollout.Spec, stored.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "the spec of a rollout never changes: change the ClusterExtensionSet, and approve the rollout that follows"))
	}
	if rollout.Labels[v1alpha1.SetLabel] != stored.Labels[v1alpha1.SetLabel] {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(v1alpha1.SetLabel), "the label never changes"))
	}
	return objectmeta.Bounded(errs)
}

// WarningsOnCreate returns no warnings.
func (*strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns no warnings.
func (*strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// statusStrategy is the strategy of the subresource status. Only status changes, and only Penstock
// writes it.
type statusStrategy struct{ *strategy }

var (
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// GetResetFields returns the fields that writes of status cannot set.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

// PrepareForUpdate restores everything except status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	rollout, stored := obj.(*olm.ClusterExtensionRollout), old.(*olm.ClusterExtensionRollout)
	rollout.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(&rollout.ObjectMeta, &stored.ObjectMeta)
}

// ValidateUpdate refuses a status that Penstock did not write, because status contains approvals.
// Decisions change status only with their own endpoint.
func (statusStrategy) ValidateUpdate(ctx context.Context, _, _ runtime.Object) field.ErrorList {
	return byPenstock(ctx, field.NewPath("status"), "the status of a rollout has what was approved and done: nobody but Penstock writes it")
}

func versioned(rollout *olm.ClusterExtensionRollout) (*v1alpha1.ClusterExtensionRollout, error) {
	out := &v1alpha1.ClusterExtensionRollout{}
	if err := v1alpha1.Convert_olm_ClusterExtensionRollout_To_v1alpha1_ClusterExtensionRollout(rollout.DeepCopy(), out, nil); err != nil {
		return nil, fmt.Errorf("converting rollout %s: %w", rollout.Name, err)
	}
	return out, nil
}
