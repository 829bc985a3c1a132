// Package validation checks that a plan is well-formed. Admission checks the rights of its author.
package validation

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/window"
)

// Bounds of durations.
const (
	minExpiry      = time.Minute
	maxExpiry      = 365 * 24 * time.Hour
	minWaitTimeout = time.Second
	maxWaitTimeout = 30 * 24 * time.Hour
	minWindow      = time.Minute
	maxWindow      = 31 * 24 * time.Hour
)

// Other bounds.
const (
	maxApprovals     = 5
	maxScheduleBytes = 256
	maxRequires      = 8
)

// ValidatePlan checks a new plan, after defaults. profiles are the allowed profiles; without them,
// the built-in profiles are allowed.
func ValidatePlan(plan *hco.ConfigurationPlan, profiles ...hco.ProfileName) field.ErrorList {
	if errs := objectmeta.ValidateSize(&plan.ObjectMeta, nil, field.NewPath("metadata")); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&plan.ObjectMeta, false, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, objectmeta.ValidateFinalizers(plan.Finalizers, field.NewPath("metadata", "finalizers"))...)
	return append(errs, validateSpec(&plan.Spec, field.NewPath("spec"), profiles)...)
}

// ValidatePlanUpdate checks a change of a plan. profiles are as in ValidatePlan.
func ValidatePlanUpdate(plan, old *hco.ConfigurationPlan, profiles ...hco.ProfileName) field.ErrorList {
	if errs := ValidatePlanStatusUpdate(plan, old); len(errs) > 0 {
		return errs
	}
	spec := field.NewPath("spec")
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&plan.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateSpec(&plan.Spec, spec, profiles)...)
	if needed, before := max(plan.Spec.Approvals, 1), max(old.Spec.Approvals, 1); needed < before {
		errs = append(errs, field.Forbidden(spec.Child("approvals"), "must not be lowered from "+itoa(before)+" to "+itoa(needed)+": delete the plan, and create one that fewer people approve"))
	}
	if plan.Spec.Profile != old.Spec.Profile {
		errs = append(errs, field.Invalid(spec.Child("profile"), plan.Spec.Profile, "is immutable: make another plan"))
	}
	return errs
}

// ValidatePlanStatusUpdate checks a change of a plan's status. Such a write also changes
// managedFields in metadata.
func ValidatePlanStatusUpdate(plan, old *hco.ConfigurationPlan) field.ErrorList {
	return objectmeta.ValidateSize(&plan.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

func validateSpec(spec *hco.ConfigurationPlanSpec, path *field.Path, profiles []hco.ProfileName) field.ErrorList {
	if len(profiles) == 0 {
		profiles = []hco.ProfileName{hco.ProfileLoadAwareRebalancing, hco.ProfileHighDensitySwap, hco.ProfileNodeHealthRemediation}
	}
	var errs field.ErrorList
	if !hco.IsOwn(spec.Profile) {
		errs = append(errs, oneOf(path.Child("profile"), spec.Profile, profiles...)...)
	}
	errs = append(errs, oneOf(path.Child("action"), spec.Action, hco.ActionDryRun, hco.ActionApply, hco.ActionIgnore)...)
	errs = append(errs, oneOf(path.Child("failurePolicy"), spec.FailurePolicy, hco.FailurePolicyAbort, hco.FailurePolicyContinue)...)
	errs = append(errs, oneOf(path.Child("onConflict"), spec.OnConflict, hco.OnConflictBlock, hco.OnConflictTake)...)
	errs = append(errs, within(path.Child("waitTimeout"), spec.WaitTimeout, minWaitTimeout, maxWaitTimeout)...)
	errs = append(errs, within(path.Child("expiresAfter"), spec.ExpiresAfter, minExpiry, maxExpiry)...)
	if spec.Window != nil {
		errs = append(errs, validateWindow(spec.Window, path.Child("window"))...)
	}
	if spec.Approvals != 0 {
		errs = append(errs, between(path.Child("approvals"), &spec.Approvals, 1, maxApprovals)...)
	}
	errs = append(errs, validateRequires(spec, path.Child("requires"), profiles)...)
	if spec.ApprovedPlanHash != "" {
		errs = append(errs, ValidatePlanHash(spec.ApprovedPlanHash, path.Child("approvedPlanHash"))...)
	}
	if spec.RestoreRun < 0 {
		errs = append(errs, field.Invalid(path.Child("restoreRun"), spec.RestoreRun, "must be the number of a run"))
	}
	if spec.Options != nil {
		errs = append(errs, validateOptions(spec, path.Child("options"))...)
	}
	return errs
}

// validateRequires checks the list of required profiles. The controller checks whether they have
// plans, because that changes over time.
func validateRequires(spec *hco.ConfigurationPlanSpec, path *field.Path, profiles []hco.ProfileName) field.ErrorList {
	if len(spec.Requires) > maxRequires {
		return field.ErrorList{field.TooMany(path, len(spec.Requires), maxRequires)}
	}
	var errs field.ErrorList
	for i, name := range spec.Requires {
		switch at := path.Index(i); {
		case name == spec.Profile:
			errs = append(errs, field.Invalid(at, name, "must not be the profile of the plan itself"))
		case slices.Contains(spec.Requires[:i], name):
			errs = append(errs, field.Duplicate(at, name))
		case !hco.IsOwn(name):
			errs = append(errs, oneOf(at, name, profiles...)...)
		}
	}
	return errs
}

// validateWindow checks the format of a window. It does not check whether the window opens before
// the plan expires, because that changes over time.
func validateWindow(recurs *hco.PlanWindow, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch schedule := path.Child("schedule"); {
	case recurs.Schedule == "":
		errs = append(errs, field.Required(schedule, "must be minute, hour, day of the month, month and day of the week, such as 0 22 * * Sat"))
	case len(recurs.Schedule) > maxScheduleBytes:
		errs = append(errs, field.TooLong(schedule, field.OmitValueType{}, maxScheduleBytes))
	default:
		if _, err := window.Schedule(recurs.Schedule); err != nil {
			errs = append(errs, field.Invalid(schedule, recurs.Schedule, err.Error()))
		}
	}
	if len(recurs.TimeZone) > maxScheduleBytes {
		errs = append(errs, field.TooLong(path.Child("timeZone"), field.OmitValueType{}, maxScheduleBytes))
	} else if _, err := window.Zone(recurs.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), recurs.TimeZone, err.Error()))
	}
	errs = append(errs, within(path.Child("duration"), &recurs.Duration, minWindow, maxWindow)...)
	if recurs.Duration.Duration%time.Second != 0 {
		errs = append(errs, field.Invalid(path.Child("duration"), recurs.Duration.Duration.String(), "must be whole seconds"))
	}
	return errs
}

// ValidatePlanHash checks the format of a plan's hash.
func ValidatePlanHash(hash string, path *field.Path) field.ErrorList {
	if err := manifest.Digest(hash).Validate(); err != nil || manifest.Digest(hash).Keyed() {
		return field.ErrorList{field.Invalid(path, hash, "must be a hash as in status.planHash: sha256: and 64 lower-case hexadecimal digits")}
	}
	return nil
}

// ValidateApprovalRequest checks an approval.
func ValidateApprovalRequest(request *hco.PlanApprovalRequest) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if request.Spec.PlanHash == "" {
		errs = append(errs, field.Required(spec.Child("planHash"), "an approval names the plan that was read: status.planHash"))
	} else {
		errs = append(errs, ValidatePlanHash(request.Spec.PlanHash, spec.Child("planHash"))...)
	}
	switch comment := request.Spec.Comment; {
	case len(comment) > v1alpha1.MaxCommentBytes:
		errs = append(errs, field.TooLong(spec.Child("comment"), field.OmitValueType{}, v1alpha1.MaxCommentBytes))
	case !utf8.ValidString(comment):
		errs = append(errs, field.Invalid(spec.Child("comment"), field.OmitValueType{}, "must be valid UTF-8"))
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	if value == "" {
		names := make([]string, len(allowed))
		for i, name := range allowed {
			names[i] = string(name)
		}
		return field.ErrorList{field.Required(path, "must be one of "+strings.Join(names, ", "))}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func between(path *field.Path, value *int32, least, most int32) field.ErrorList {
	if value == nil || *value >= least && *value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, "must be between "+itoa(least)+" and "+itoa(most))}
}

func within(path *field.Path, value *metav1.Duration, least, most time.Duration) field.ErrorList {
	if value == nil || value.Duration >= least && value.Duration <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(), "must be between "+least.String()+" and "+most.String())}
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }
