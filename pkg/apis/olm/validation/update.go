package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// immutable is the error for every field that decides the content of a revision.
const immutable = "field is immutable: a revision's content never changes; make the next revision: the same file with the next number in metadata.name and spec.revision"

// ValidateRevisionUpdate checks an update of metadata and spec. It does not check immutable content
// again, so that a revision that an older release accepted stays usable. removed are digests of the
// objects that the revision removes: a user who resumes it may acknowledge them.
func ValidateRevisionUpdate(updated, old *olm.ClusterExtensionRevision, removed ...string) field.ErrorList {
	metadata := field.NewPath("metadata")
	if errs := objectmeta.ValidateSize(&updated.ObjectMeta, &old.ObjectMeta, metadata); len(errs) > 0 {
		return errs
	}
	errs := apivalidation.ValidateObjectMetaUpdate(&updated.ObjectMeta, &old.ObjectMeta, metadata)
	errs = append(errs, validateRoom(updated, old)...)
	errs = append(errs, validateAnswers(updated, old, removed)...)
	errs = append(errs, validateHelmRelease(updated, old)...)
	errs = append(errs, validateAcknowledgements(updated, old)...)
	if chain, _, ok := olm.ChainOf(old.Name); ok {
		errs = append(errs, validateChainLabel(updated, chain)...)
	}
	errs = append(errs, validateMutableSpec(&updated.Spec)...)
	errs = append(errs, validateLifecycleUpdate(updated.Spec.LifecycleState, old.Spec.LifecycleState)...)
	return append(errs, validateContentUpdate(&updated.Spec, &old.Spec)...)
}

func validateLifecycleUpdate(updated, old olm.LifecycleState) field.ErrorList {
	if old != olm.LifecycleStateArchived || updated == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "lifecycleState"), updated,
		"Archived is final: to have this content again, create a new revision of it")}
}

func validateContentUpdate(updated, old *olm.ClusterExtensionRevisionSpec) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	unchanged := func(name string, same bool) {
		if !same {
			errs = append(errs, field.Invalid(spec.Child(name), field.OmitValueType{}, immutable))
		}
	}
	unchanged("revision", updated.Revision == old.Revision)
	unchanged("previous", apiequality.Semantic.DeepEqual(updated.Previous, old.Previous))
	unchanged("targetRef", apiequality.Semantic.DeepEqual(updated.TargetRef, old.TargetRef))
	unchanged("collisionProtection", updated.CollisionProtection == old.CollisionProtection)
	unchanged("progressionProbes", apiequality.Semantic.DeepEqual(updated.ProgressionProbes, old.ProgressionProbes))
	unchanged("yield", apiequality.Semantic.DeepEqual(updated.Yield, old.Yield))
	return append(errs, validatePhasesUpdate(updated.Phases, old.Phases, spec.Child("phases"))...)
}

// maxPhaseErrors bounds the reported phases that differ. The update can have any number of phases.
const maxPhaseErrors = v1alpha1.MaxPhases

// validatePhasesUpdate reports the phases that differ, and the first difference in each. It never
// prints their content.
func validatePhasesUpdate(updated, old []olm.RevisionPhase, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(updated, old) {
		return nil
	}
	var errs field.ErrorList
	differs := func(at *field.Path, difference string) {
		if len(errs) < maxPhaseErrors {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, immutable+"; "+difference))
		}
	}
	before := phasesByName(old)
	after := phasesByName(updated)
	for _, phase := range updated {
		was, found := before[phase.Name]
		switch {
		case !found:
			differs(path.Key(phase.Name), "the phase was added")
		case !apiequality.Semantic.DeepEqual(phase, *was):
			differs(path.Key(phase.Name), phaseDifference(&phase, was))
		}
	}
	for _, phase := range old {
		if after[phase.Name] == nil {
			differs(path.Key(phase.Name), "the phase was removed")
		}
	}
	if len(errs) == 0 {
		// The phases are the same, but in another order, or a phase is listed twice.
		differs(path, "the order of the phases changed")
	}
	return errs
}

func phasesByName(phases []olm.RevisionPhase) map[string]*olm.RevisionPhase {
	byName := make(map[string]*olm.RevisionPhase, len(phases))
	for i := range phases {
		byName[phases[i].Name] = &phases[i]
	}
	return byName
}

func phaseDifference(updated, old *olm.RevisionPhase) string {
	if updated.CollisionProtection != old.CollisionProtection {
		return fmt.Sprintf("collisionProtection was %q", old.CollisionProtection)
	}
	for i := range min(len(updated.Objects), len(old.Objects)) {
		if difference := objectDifference(&updated.Objects[i], &old.Objects[i]); difference != "" {
			return fmt.Sprintf("objects[%d] %s", i, difference)
		}
	}
	return fmt.Sprintf("has %d objects, had %d", len(updated.Objects), len(old.Objects))
}

// objectDifference describes how two entries differ; "" if they are equal.
func objectDifference(updated, old *olm.RevisionObject) string {
	now, was := describe(updated), describe(old)
	switch {
	case apiequality.Semantic.DeepEqual(updated, old):
		return ""
	case now != was:
		return fmt.Sprintf("is %s, was %s", now, was)
	case updated.CollisionProtection != old.CollisionProtection:
		return fmt.Sprintf("(%s) had collisionProtection %q", was, old.CollisionProtection)
	default:
		return fmt.Sprintf("(%s) has another manifest", was)
	}
}

func describe(object *olm.RevisionObject) string {
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s", object.APIVersion, object.Kind, name)
}
