// Package validation checks that a revision is well-formed, and which fields an update may change.
// It is pure: functions of values, without clients, clocks or other revisions. Other packages
// decide who may write a revision, and whether its number is free in its chain.
//
// Messages are for the author of the revision. They name the field, the found value and the allowed
// values, and never print the content of a manifest.
package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ValidateRevision returns all errors of a revision in its stored form: defaults set, manifests
// replaced by identity and digest, the chain label set. Of status it checks only the size of
// requestedBy. It does not compile CEL; see ValidateExpressions.
func ValidateRevision(revision *olm.ClusterExtensionRevision) field.ErrorList {
	// The size of metadata bounds the work of the checks that follow.
	if errs := objectmeta.ValidateSize(&revision.ObjectMeta, nil, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := validateIdentity(revision)
	errs = append(errs, validateAnswers(revision, &olm.ClusterExtensionRevision{}, nil)...)
	errs = append(errs, validateHelmRelease(revision, &olm.ClusterExtensionRevision{})...)
	errs = append(errs, validateAcknowledgements(revision, &olm.ClusterExtensionRevision{})...)
	errs = append(errs, validateMutableSpec(&revision.Spec)...)
	spec := field.NewPath("spec")
	errs = append(errs, validateCollisionProtection(revision.Spec.CollisionProtection, spec.Child("collisionProtection"), required)...)
	errs = append(errs, validatePrevious(revision)...)
	errs = append(errs, validateTarget(revision.Spec.TargetRef, spec.Child("targetRef", "name"))...)
	errs = append(errs, validatePhases(revision.Spec.Phases, spec.Child("phases"))...)
	errs = append(errs, validateProbes(revision.Spec.ProgressionProbes, spec.Child("progressionProbes"))...)
	errs = append(errs, validateYield(revision.Spec.Yield, spec.Child("yield"))...)
	if len(errs) == 0 {
		// The revision is encoded only if all of its parts are within their limits.
		errs = append(errs, validateSpecSize(&revision.Spec)...)
		errs = append(errs, validateRoom(revision, nil)...)
		errs = append(errs, validateSize(field.NewPath("status", "requestedBy"), revision.Status.RequestedBy, maxRequesterBytes, "what is known of the user")...)
	}
	return errs
}

// validateIdentity checks metadata, and that name, number and chain label match.
func validateIdentity(revision *olm.ClusterExtensionRevision) field.ErrorList {
	metadata := field.NewPath("metadata")
	chain, number, ok := olm.ChainOf(revision.Name)
	if ok {
		// A label derived from an invalid extension name is invalid, too. One error is enough.
		if errs := validateExtension(revision.Name, chain); len(errs) > 0 {
			return errs
		}
	}
	errs := apivalidation.ValidateObjectMeta(&revision.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, metadata)
	errs = append(errs, objectmeta.ValidateFinalizers(revision.Finalizers, metadata.Child("finalizers"))...)
	errs = append(errs, validateNumber(revision.Spec.Revision)...)
	if len(errs) > 0 {
		return errs // The other checks would repeat these errors.
	}
	if !ok {
		return append(errs, field.Invalid(metadata.Child("name"), revision.Name,
			fmt.Sprintf("must be <extension>-<revision>, such as %s", olm.RevisionName("argocd", revision.Spec.Revision))))
	}
	if number != revision.Spec.Revision {
		errs = append(errs, field.Invalid(field.NewPath("spec", "revision"), revision.Spec.Revision,
			fmt.Sprintf("must be %d, the number at the end of metadata.name %q", number, revision.Name)))
	}
	return append(errs, validateChainLabel(revision, chain)...)
}

func validateNumber(number int64) field.ErrorList {
	if number >= 1 && number <= v1alpha1.MaxRevision {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "revision"), number,
		fmt.Sprintf("must be from 1 to %d", v1alpha1.MaxRevision))}
}

// validateExtension checks the part of name before the number. A DNS subdomain of at most 63
// characters is also a valid label value.
func validateExtension(name, chain string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if len(chain) > v1alpha1.MaxExtensionNameLength {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("the extension's name %q has %d characters, must have at most %d",
			chain, len(chain), v1alpha1.MaxExtensionNameLength))}
	}
	var errs field.ErrorList
	for _, problem := range apivalidation.NameIsDNSSubdomain(chain, false) {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("the extension's name %q: %s", chain, problem)))
	}
	return errs
}

func validateChainLabel(revision *olm.ClusterExtensionRevision, chain string) field.ErrorList {
	path := field.NewPath("metadata", "labels").Key(v1alpha1.ChainLabel)
	label, found := revision.Labels[v1alpha1.ChainLabel]
	switch {
	case !found:
		return field.ErrorList{field.Required(path, fmt.Sprintf("must be %q, the extension in metadata.name", chain))}
	case label != chain:
		return field.ErrorList{field.Invalid(path, label, fmt.Sprintf("must be %q, the extension in metadata.name, and cannot change", chain))}
	}
	return nil
}

// validateMutableSpec checks the fields that an update may change.
func validateMutableSpec(spec *olm.ClusterExtensionRevisionSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := oneOf(path.Child("lifecycleState"), spec.LifecycleState,
		olm.LifecycleStateActive, olm.LifecycleStatePaused, olm.LifecycleStateArchived)
	errs = append(errs, oneOf(path.Child("teardownPolicy"), spec.TeardownPolicy,
		olm.TeardownPolicyDelete, olm.TeardownPolicyOrphan)...)
	// The field was added later: a revision that was exported before does not have it, and that
	// means Orphan.
	if spec.AdoptedTeardownPolicy != "" {
		errs = append(errs, oneOf(path.Child("adoptedTeardownPolicy"), spec.AdoptedTeardownPolicy,
			olm.TeardownPolicyOrphan, olm.TeardownPolicyDelete)...)
	}
	if spec.ProgressDeadlineMinutes < 0 {
		errs = append(errs, field.Invalid(path.Child("progressDeadlineMinutes"), spec.ProgressDeadlineMinutes,
			"must be 0, for no deadline, or a number of minutes"))
	}
	if spec.SuccessDelaySeconds < 0 || spec.SuccessDelaySeconds > v1alpha1.MaxSuccessDelaySeconds {
		errs = append(errs, field.Invalid(path.Child("successDelaySeconds"), spec.SuccessDelaySeconds,
			fmt.Sprintf("must be from 0 to %d", v1alpha1.MaxSuccessDelaySeconds)))
	}
	errs = append(errs, MetricChecks(spec.MetricChecks, path.Child("metricChecks"))...)
	return append(errs, validateOnFailure(spec, path.Child("onFailure"))...)
}

// MetricChecks checks the names of MetricChecks.
func MetricChecks(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(names) > v1alpha1.MaxMetricChecks {
		errs = append(errs, field.TooMany(path, len(names), v1alpha1.MaxMetricChecks))
	}
	for i, name := range names {
		if problems := utilvalidation.IsDNS1123Subdomain(name); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), name, "must be the name of a MetricCheck: "+strings.Join(problems, "; ")))
		} else if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

func validateOnFailure(spec *olm.ClusterExtensionRevisionSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path, spec.OnFailure, olm.OnFailureNone, olm.OnFailureRollback)
	if spec.OnFailure == olm.OnFailureRollback && spec.ProgressDeadlineMinutes == 0 {
		errs = append(errs, field.Invalid(path, spec.OnFailure,
			"needs spec.progressDeadlineMinutes above 0, because without a deadline no rollout fails; or must be \"None\""))
	}
	return errs
}

// presence decides whether a field must have a value.
type presence bool

const (
	required presence = true
	optional presence = false
)

func validateCollisionProtection(value olm.CollisionProtection, path *field.Path, must presence) field.ErrorList {
	if value == "" && must == optional {
		return nil
	}
	return oneOf(path, value,
		olm.CollisionProtectionPrevent, olm.CollisionProtectionIfNoController, olm.CollisionProtectionNone)
}

// validatePrevious checks that the revisions in spec.previous are older revisions of the same
// chain.
func validatePrevious(revision *olm.ClusterExtensionRevision) field.ErrorList {
	chain, own, ok := olm.ChainOf(revision.Name)
	if !ok {
		return nil // The check of the name reports it.
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, previous := range revision.Spec.Previous {
		path := field.NewPath("spec", "previous").Index(i).Child("name")
		its, number, ok := olm.ChainOf(previous.Name)
		switch {
		case previous.Name == "":
			errs = append(errs, field.Required(path, "the name of a revision"))
		case !ok || its != chain || number >= own:
			errs = append(errs, field.Invalid(path, previous.Name,
				fmt.Sprintf("must be %s-<revision> with a number below %d", chain, own)))
		case seen[previous.Name]:
			errs = append(errs, field.Duplicate(path, previous.Name))
		}
		seen[previous.Name] = true
	}
	return errs
}

// validateSpecSize bounds the stored spec. It encodes the served version, as the store does.
func validateSpecSize(spec *olm.ClusterExtensionRevisionSpec) field.ErrorList {
	path := field.NewPath("spec")
	served, err := servedSpec(spec)
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("measuring it: %w", err))}
	}
	return validateSize(path, served, v1alpha1.MaxSpecBytes, "the spec without manifests")
}

func servedSpec(spec *olm.ClusterExtensionRevisionSpec) (*v1alpha1.ClusterExtensionRevisionSpec, error) {
	served := &v1alpha1.ClusterExtensionRevisionSpec{}
	return served, v1alpha1.Convert_olm_ClusterExtensionRevisionSpec_To_v1alpha1_ClusterExtensionRevisionSpec(spec, served, nil)
}

// validateRoom reserves space in the record for status, and for the fields that a deletion adds.
// The controllers can then always store the status of an accepted revision. An older revision with
// too little space left may stay as it is, and may shrink.
func validateRoom(revision, old *olm.ClusterExtensionRevision) field.ErrorList {
	path := field.NewPath("metadata")
	metadata, err := objectmeta.Bytes(&revision.ObjectMeta)
	if err == nil && metadata <= maxBesideStatus-v1alpha1.MaxSpecBytes {
		return nil // It fits with the largest spec.
	}
	var served *v1alpha1.ClusterExtensionRevisionSpec
	if err == nil {
		served, err = servedSpec(&revision.Spec)
	}
	var encoded []byte
	if err == nil {
		encoded, err = json.Marshal(served)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("measuring it: %w", err))}
	}
	if metadata+len(encoded) <= maxBesideStatus {
		return nil
	}
	if old != nil {
		if was, err := objectmeta.Bytes(&old.ObjectMeta); err == nil && metadata <= was {
			return nil
		}
	}
	return field.ErrorList{tooLong(path, fmt.Sprintf("metadata has %d bytes in JSON and the spec without manifests %d, together they must have at most %d",
		metadata, len(encoded), maxBesideStatus))}
}

// maxRequesterBytes bounds status.requestedBy in JSON. Groups and extra can fill the headers of a
// request, and stay in status for ever.
const maxRequesterBytes = 64 << 10

// maxBesideStatus bounds metadata and spec together. The reserve is for the timestamp and finalizer
// of a deletion, and for apiVersion, kind and field names.
const maxBesideStatus = v1alpha1.MaxRecordBytes - v1alpha1.MaxStatusBytes - 4<<10

func validateSize(path *field.Path, value any, limit int, what string) field.ErrorList {
	encoded, err := json.Marshal(value)
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("measuring it: %w", err))}
	}
	if len(encoded) <= limit {
		return nil
	}
	return field.ErrorList{tooLong(path, fmt.Sprintf("%s has %d bytes in JSON, must have at most %d", what, len(encoded), limit))}
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	for _, candidate := range allowed {
		if value == candidate {
			return nil
		}
	}
	if value == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("must be one of %q", allowed))}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func tooMany(path *field.Path, found int, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: path.String(), BadValue: found, Detail: detail}
}

func tooLong(path *field.Path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooLong, Field: path.String(), BadValue: field.OmitValueType{}, Detail: detail}
}
