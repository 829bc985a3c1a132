package maintenancewindow

import (
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/window"
)

// Validate returns the errors in a spec. A spec without errors can be parsed by New.
func Validate(spec *Spec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	switch spec.Type {
	case TypeAllow, TypeDeny:
	case "":
		errs = append(errs, field.Required(path.Child("type"), "must be Allow or Deny"))
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), spec.Type, []string{TypeAllow, TypeDeny}))
	}
	once := spec.Start != nil || spec.End != nil
	recurs := spec.Schedule != "" || spec.Duration != nil
	switch {
	case once && recurs:
		errs = append(errs, field.Forbidden(path.Child("start"), "must not be set beside schedule and duration: a window opens once or again and again"))
	case once:
		errs = append(errs, validateOnce(spec, path)...)
	default:
		errs = append(errs, validateRecurring(spec, path)...)
	}
	if spec.ExtensionSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.ExtensionSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("extensionSelector"))...)
	}
	return errs
}

func validateOnce(spec *Spec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.TimeZone != "" {
		errs = append(errs, field.Forbidden(path.Child("timeZone"), "must not be set beside start and end, which have a time zone of their own"))
	}
	switch {
	case spec.Start == nil:
		errs = append(errs, field.Required(path.Child("start"), "must be set beside end"))
	case spec.End == nil:
		errs = append(errs, field.Required(path.Child("end"), "must be set beside start"))
	case !spec.End.After(spec.Start.Time):
		errs = append(errs, field.Invalid(path.Child("end"), spec.End.UTC().Format(time.RFC3339), "must be after start, "+spec.Start.UTC().Format(time.RFC3339)))
	}
	return errs
}

func validateRecurring(spec *Spec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Schedule == "" {
		errs = append(errs, field.Required(path.Child("schedule"), "must be set, with duration; or start and end"))
	} else if spec.Duration == nil {
		errs = append(errs, field.Required(path.Child("duration"), "must be set beside schedule"))
	}
	if len(errs) > 0 {
		return errs
	}
	return window.Validate(spec.Schedule, spec.zone(), spec.Duration.Duration, path)
}

func (s *Spec) zone() string {
	if s.TimeZone == "" {
		return "UTC"
	}
	return s.TimeZone
}
