package configurationprofiledefinition

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
)

type strategy struct {
	shared.Cluster
	schemas Schemas
}

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
	definition := obj.(*hco.ConfigurationProfileDefinition)
	definition.Generation = 1
	definition.Status = hco.ConfigurationProfileDefinitionStatus{
		Conditions: []metav1.Condition{objectmeta.Unobserved(v1alpha1.ConditionAccessGranted, definition.CreationTimestamp)},
	}
}

// PrepareForUpdate keeps status, and increments the generation if spec has changed.
func (*strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	definition, stored := obj.(*hco.ConfigurationProfileDefinition), old.(*hco.ConfigurationProfileDefinition)
	definition.Status = *stored.Status.DeepCopy()
	if !apiequality.Semantic.DeepEqual(definition.Spec, stored.Spec) {
		definition.Generation = stored.Generation + 1
	}
}

// Validate returns the errors in a new definition.
func (*strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	definition := obj.(*hco.ConfigurationProfileDefinition)
	if errs := objectmeta.ValidateSize(&definition.ObjectMeta, nil, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&definition.ObjectMeta, false, nameIsLabel, field.NewPath("metadata"))
	errs = append(errs, objectmeta.ValidateFinalizers(definition.Finalizers, field.NewPath("metadata", "finalizers"))...)
	return objectmeta.Bounded(append(errs, validateSpec(definition)...))
}

// nameIsLabel requires a DNS label, because the names of ServiceAccounts and field managers contain
// the name.
func nameIsLabel(name string, prefix bool) []string {
	return apimachineryvalidation.NameIsDNSLabel(name, prefix)
}

func validateSpec(definition *hco.ConfigurationProfileDefinition) field.ErrorList {
	spec, err := External(&definition.Spec)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	return cel.Validate(spec, field.NewPath("spec"))
}

// ValidateUpdate returns the errors in an update. An unchanged spec is not compiled again, so a
// stored spec stays valid.
func (*strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	definition, stored := obj.(*hco.ConfigurationProfileDefinition), old.(*hco.ConfigurationProfileDefinition)
	if errs := objectmeta.ValidateSize(&definition.ObjectMeta, &stored.ObjectMeta, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&definition.ObjectMeta, &stored.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(definition.Spec, stored.Spec) {
		errs = append(errs, validateSpec(definition)...)
	}
	return objectmeta.Bounded(errs)
}

// maxWarnings bounds the warnings of one request.
const maxWarnings = 10

// WarningsOnCreate returns warnings about expressions that do not match the schemas of the cluster.
func (s *strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	definition := obj.(*hco.ConfigurationProfileDefinition)
	spec, err := External(&definition.Spec)
	if err != nil {
		return nil
	}
	compiled, err := cel.Compile(spec)
	if err != nil {
		return nil // validation reports it
	}
	warnings := compiled.Warnings(s.schemas(ctx, spec.Requirements))
	return warnings[:min(len(warnings), maxWarnings)]
}

// WarningsOnUpdate returns the same warnings as a create if the spec has changed.
func (s *strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if apiequality.Semantic.DeepEqual(obj.(*hco.ConfigurationProfileDefinition).Spec, old.(*hco.ConfigurationProfileDefinition).Spec) {
		return nil
	}
	return s.WarningsOnCreate(ctx, obj)
}

// statusStrategy is the strategy of the subresource status. Only status changes. Admission lets
// only this process write it.
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
	definition, stored := obj.(*hco.ConfigurationProfileDefinition), old.(*hco.ConfigurationProfileDefinition)
	definition.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(&definition.ObjectMeta, &stored.ObjectMeta)
}

// ValidateUpdate returns the errors in a status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return objectmeta.ValidateSize(&obj.(*hco.ConfigurationProfileDefinition).ObjectMeta, &old.(*hco.ConfigurationProfileDefinition).ObjectMeta, field.NewPath("metadata"))
}

// WarningsOnUpdate returns no warnings.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// External converts a spec to the external version.
func External(spec *hco.ConfigurationProfileDefinitionSpec) (*v1alpha1.ConfigurationProfileDefinitionSpec, error) {
	out := &v1alpha1.ConfigurationProfileDefinitionSpec{}
	return out, v1alpha1.Convert_hco_ConfigurationProfileDefinitionSpec_To_v1alpha1_ConfigurationProfileDefinitionSpec(spec.DeepCopy(), out, nil)
}
