package extension

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension/patch"
	"github.com/penstock-project/penstock/pkg/extension/values"
	"github.com/penstock-project/penstock/pkg/note"
)

// Values of ApprovalAnnotation.
const (
	ApprovalAutomatic = "Automatic"
	ApprovalManual    = "Manual"
	ApprovalReviewed  = "Reviewed"
)

// Limits of the annotations with numbers; the lowest value is 0.
const (
	// MaxProgressDeadline is a week, in minutes.
	MaxProgressDeadline = 10080
	// MaxSuccessDelay is a day, in seconds.
	MaxSuccessDelay = 86400
)

// Policy has the settings in the annotations of a ClusterExtension.
type Policy struct {
	// Approval is ApprovalAutomatic, ApprovalReviewed or ApprovalManual.
	Approval string
	// ProgressDeadlineMinutes is nil if no annotation sets it.
	ProgressDeadlineMinutes *int32
	// SuccessDelaySeconds is 0 if no annotation sets it.
	SuccessDelaySeconds int32
	// OnFailure is None or Rollback.
	OnFailure string
	// CollisionProtection is Prevent, IfNoController or None.
	CollisionProtection string
	// TeardownPolicy is Delete or Orphan.
	TeardownPolicy string
	// AcceptRequirements skips the check of a bundle's requirements.
	AcceptRequirements bool
	// Yield are the fields that revisions leave to other field managers.
	Yield []v1alpha1.YieldRule
	// Target is the name of a Secret; empty for the host.
	Target string
}

func defaults() Policy {
	return Policy{Approval: ApprovalAutomatic, OnFailure: "None", CollisionProtection: "Prevent", TeardownPolicy: "Delete"}
}

func annotationsPath() *field.Path { return field.NewPath("metadata", "annotations") }

// ParsePolicy parses the annotations of a ClusterExtension. Each error names the annotation, its
// value, and the allowed values. An invalid value counts as the default.
func ParsePolicy(annotations map[string]string) (Policy, field.ErrorList) {
	policy := defaults()
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if err := policy.set(name, annotations[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return policy, errs
}

// ValidateAnnotations returns the errors of annotations that are set or changed. It accepts values
// that were stored before, so that every stored object can still be written. Old is nil for a
// creation.
func ValidateAnnotations(annotations, old map[string]string, creation bool) field.ErrorList {
	var errs field.ErrorList
	policy := defaults()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if before, found := old[name]; found && before == annotations[name] {
			continue
		}
		if err := policy.set(name, annotations[name]); err != nil {
			errs = append(errs, err)
		}
	}
	if target := annotations[TargetAnnotation]; !creation && target != old[TargetAnnotation] {
		errs = append(errs, field.Invalid(annotationsPath().Key(TargetAnnotation), target,
			"the cluster of an extension does not change: it was "+strconv.Quote(old[TargetAnnotation])+"; delete the extension, and create it for the other cluster"))
	}
	return errs
}

// set parses one annotation. It ignores annotations that are not Penstock's.
func (p *Policy) set(name, value string) *field.Error {
	path := annotationsPath().Key(name)
	choice := func(into *string, allowed ...string) *field.Error {
		if !slices.Contains(allowed, value) {
			return field.NotSupported(path, value, allowed)
		}
		*into = value
		return nil
	}
	switch name {
	case ApprovalAnnotation:
		return choice(&p.Approval, ApprovalAutomatic, ApprovalReviewed, ApprovalManual)
	case HoldOnAnnotation:
		if _, err := note.ParseHoldOn(note.SplitHoldOn(value)); err != nil {
			return field.Invalid(path, value, err.Error())
		}
		return nil
	case OnFailureAnnotation:
		return choice(&p.OnFailure, "None", "Rollback")
	case CollisionProtectionAnnotation:
		return choice(&p.CollisionProtection, "Prevent", "IfNoController", "None")
	case TeardownPolicyAnnotation:
		return choice(&p.TeardownPolicy, "Delete", "Orphan")
	case AcceptRequirementsAnnotation:
		accepted := ""
		err := choice(&accepted, "true", "false")
		p.AcceptRequirements = accepted == "true"
		return err
	case ProgressDeadlineAnnotation:
		minutes, err := number(path, value, MaxProgressDeadline, "minutes")
		if err == nil {
			p.ProgressDeadlineMinutes = &minutes
		}
		return err
	case SuccessDelayAnnotation:
		seconds, err := number(path, value, MaxSuccessDelay, "seconds")
		p.SuccessDelaySeconds = seconds
		return err
	case MetricChecksAnnotation:
		if len(ParseMetricChecks(value)) == 0 {
			return field.Invalid(path, value, "it must name MetricChecks, with commas between them: error-rate,latency")
		}
		return nil
	case YieldAnnotation:
		rules, err := ParseYield(value)
		if err != nil {
			return field.Invalid(path, value, err.Error())
		}
		p.Yield = rules
		return nil
	case ReportDriftUntilAnnotation:
		// The webhook compares with the current time.
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return field.Invalid(path, value, "it must be a time as in RFC 3339, such as 2026-11-28T12:00:00Z")
		}
		return nil
	case RequiresAnnotation:
		if _, err := ParseRequires(value); err != nil {
			return field.Invalid(path, value, err.Error())
		}
		return nil
	case PatchesAnnotation:
		if _, err := patch.Parse(value); err != nil {
			return field.Invalid(path, "a list of patches", err.Error())
		}
		return nil
	case ValuesFromAnnotation:
		if _, err := values.Parse(value); err != nil {
			return field.Invalid(path, value, err.Error())
		}
		return nil
	case AcknowledgeDependentsAnnotation, SetAnnotation, ContentAnnotation, RolloutAnnotation, CatalogAnnotation:
		return nil
	case TargetAnnotation:
		if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
			return field.Invalid(path, value, "it must be the name of a Secret: "+strings.Join(problems, "; "))
		}
		p.Target = value
		return nil
	}
	if strings.HasPrefix(name, AnnotationPrefix) && name != AuthorAnnotation {
		return field.Invalid(path, value, "no annotation of a ClusterExtension has this name; the name must be one of "+strings.Join(annotationNames(), ", "))
	}
	return nil
}

// ParseYield parses YieldAnnotation: a list of yield rules. It refuses unknown fields. The
// validation of revisions checks the rules.
func ParseYield(value string) ([]v1alpha1.YieldRule, error) {
	var rules []v1alpha1.YieldRule
	if err := yaml.UnmarshalStrict([]byte(value), &rules); err != nil {
		return nil, fmt.Errorf("it must be a list as spec.yield of a revision, such as %s: %w", yieldExample, err)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("it has no rule: remove the annotation, or list rules, such as %s", yieldExample)
	}
	return rules, nil
}

const yieldExample = "[{selector: {groupKind: {group: apps, kind: Deployment}}, fields: [spec.replicas]}]"

// ParseMetricChecks parses MetricChecksAnnotation.
func ParseMetricChecks(value string) []string {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// decimal matches a decimal number without leading zeros, up to 999999999.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

func number(path *field.Path, value string, most int32, unit string) (int32, *field.Error) {
	if decimal.MatchString(value) {
		if n, err := strconv.ParseInt(value, 10, 32); err == nil && n <= int64(most) {
			return int32(n), nil
		}
	}
	return 0, field.Invalid(path, value, "it must be a number of "+unit+" from 0 to "+strconv.Itoa(int(most))+`, such as "30"`)
}

func annotationNames() []string {
	return []string{ApprovalAnnotation, HoldOnAnnotation, ProgressDeadlineAnnotation, SuccessDelayAnnotation, MetricChecksAnnotation, OnFailureAnnotation,
		CollisionProtectionAnnotation, TeardownPolicyAnnotation, AcceptRequirementsAnnotation, YieldAnnotation, TargetAnnotation,
		RequiresAnnotation, AcknowledgeDependentsAnnotation, PatchesAnnotation, ValuesFromAnnotation, ReportDriftUntilAnnotation}
}
