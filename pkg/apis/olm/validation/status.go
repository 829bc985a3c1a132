package validation

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ValidateRevisionStatusUpdate checks a new status.
func ValidateRevisionStatusUpdate(updated, old *olm.ClusterExtensionRevision) field.ErrorList {
	// A write of status also changes managedFields in metadata.
	if errs := objectmeta.ValidateSize(&updated.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apivalidation.ValidateObjectMetaUpdate(&updated.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateRoom(updated, old)...)
	path := field.NewPath("status")
	status := &updated.Status
	errs = append(errs, validateObservedGeneration(updated, path.Child("observedGeneration"))...)
	if !apiequality.Semantic.DeepEqual(status.RequestedBy, old.Status.RequestedBy) {
		errs = append(errs, field.Invalid(path.Child("requestedBy"), field.OmitValueType{}, "field is immutable: the server stamped it"))
	}
	errs = append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateLatch(status, &old.Status, path.Child("conditions"))...)
	errs = append(errs, validatePhaseStatuses(status.Phases, path.Child("phases"))...)
	if len(errs) == 0 {
		errs = append(errs, validateStatusSize(status, path)...)
	}
	return errs
}

func validateObservedGeneration(revision *olm.ClusterExtensionRevision, path *field.Path) field.ErrorList {
	observed := revision.Status.ObservedGeneration
	if observed >= 0 && observed <= revision.Generation {
		return nil
	}
	return field.ErrorList{field.Invalid(path, observed,
		fmt.Sprintf("must be from 0 to %d, metadata.generation", revision.Generation))}
}

// validateLatch keeps Succeeded True for ever, because controllers archive older revisions once it
// is True.
func validateLatch(updated, old *olm.ClusterExtensionRevisionStatus, path *field.Path) field.ErrorList {
	if !meta.IsStatusConditionTrue(old.Conditions, v1alpha1.ConditionSucceeded) ||
		meta.IsStatusConditionTrue(updated.Conditions, v1alpha1.ConditionSucceeded) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Key(v1alpha1.ConditionSucceeded).Child("status"), field.OmitValueType{},
		"must stay True: the rollout was complete once")}
}

func validatePhaseStatuses(phases []olm.PhaseStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(phases) > v1alpha1.MaxPhases {
		errs = append(errs, tooMany(path, len(phases), fmt.Sprintf("a revision has at most %d phases", v1alpha1.MaxPhases)))
		return errs
	}
	names := map[string]bool{}
	for i := range phases {
		errs = append(errs, validatePhaseName(phases[i].Name, names, path.Index(i).Child("name"))...)
		errs = append(errs, validatePhaseStatus(&phases[i], path.Index(i))...)
	}
	return errs
}

func validatePhaseStatus(phase *olm.PhaseStatus, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("state"), phase.State,
		olm.PhaseStatePending, olm.PhaseStateProgressing, olm.PhaseStateAvailable,
		olm.PhaseStateFailing, olm.PhaseStateSuperseded, olm.PhaseStateArchived)
	counts := []struct {
		name  string
		value int32
	}{
		{"objects", phase.Objects}, {"applied", phase.Applied}, {"available", phase.Available},
		{"superseded", phase.Superseded}, {"failingOmitted", phase.FailingOmitted},
	}
	for _, count := range counts {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(count.value), path.Child(count.name))...)
	}
	errs = append(errs, validatePhaseTimes(phase, path)...)
	failing := path.Child("failing")
	if len(phase.Failing) > v1alpha1.MaxReportedFailures {
		errs = append(errs, tooMany(failing, len(phase.Failing),
			fmt.Sprintf("at most %d are listed, the others are counted in failingOmitted", v1alpha1.MaxReportedFailures)))
		return errs
	}
	for i := range phase.Failing {
		errs = append(errs, validateFailure(&phase.Failing[i], failing.Index(i))...)
	}
	return errs
}

func validatePhaseTimes(phase *olm.PhaseStatus, path *field.Path) field.ErrorList {
	switch {
	case phase.AvailableAt == nil:
		return nil
	case phase.StartedAt == nil:
		return field.ErrorList{field.Required(path.Child("startedAt"), "a phase is available after it has started: see availableAt")}
	case phase.AvailableAt.Time.Before(phase.StartedAt.Time):
		return field.ErrorList{field.Invalid(path.Child("availableAt"), phase.AvailableAt.UTC().Format(time.RFC3339),
			"must not be before startedAt, "+phase.StartedAt.UTC().Format(time.RFC3339))}
	default:
		return nil
	}
}

func validateFailure(failure *olm.ObjectFailure, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	needed := []struct{ name, value string }{
		{"apiVersion", failure.APIVersion}, {"kind", failure.Kind}, {"name", failure.Name}, {"reason", failure.Reason},
	}
	for _, must := range needed {
		if must.value == "" {
			errs = append(errs, field.Required(path.Child(must.name), "names what fails, and why"))
		}
	}
	if len(failure.Message) > v1alpha1.MaxMessageLength {
		errs = append(errs, tooLong(path.Child("message"),
			fmt.Sprintf("has %d bytes, must have at most %d", len(failure.Message), v1alpha1.MaxMessageLength)))
	}
	if cause := failure.Cause; cause != nil {
		for _, must := range []struct{ name, value string }{
			{"reason", cause.Reason}, {"object.kind", cause.Object.Kind}, {"object.name", cause.Object.Name},
		} {
			if must.value == "" {
				errs = append(errs, field.Required(path.Child("cause").Child(must.name), "names why the object is not ready, and what shows it"))
			}
		}
	}
	return errs
}

func validateStatusSize(status *olm.ClusterExtensionRevisionStatus, path *field.Path) field.ErrorList {
	var served v1alpha1.ClusterExtensionRevisionStatus
	if err := v1alpha1.Convert_olm_ClusterExtensionRevisionStatus_To_v1alpha1_ClusterExtensionRevisionStatus(status, &served, nil); err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("measuring it: %w", err))}
	}
	return validateSize(path, served, v1alpha1.MaxStatusBytes, "the status")
}
