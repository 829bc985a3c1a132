package validation

import (
	"regexp"
	"slices"
	"time"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco"
)

// Bounds of options.
const (
	maxUnhealthyConditions = 10
	maxUnhealthyDuration   = 24 * time.Hour
	maxNodeSelector        = 10
	minSwapFile            = 1 << 10
	maxSwapFile            = 1 << 20
	// maxWithoutSwap is the ratio, in percent, that nodes can sustain without swap, because virtual
	// machines do not use all of their memory.
	maxWithoutSwap = 120
)

// validateOptions checks the options of a plan. Only the options of its profile can be set.
func validateOptions(spec *hco.ConfigurationPlanSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Options.Values != nil && !hco.IsOwn(spec.Profile) {
		errs = append(errs, field.Forbidden(path.Child("values"), "is for profiles of ConfigurationProfileDefinitions, but this is a plan of "+string(spec.Profile)))
	}
	if options := spec.Options.LoadAwareRebalancing; options != nil {
		member := path.Child("loadAwareRebalancing")
		errs = append(errs, belongs(spec.Profile, hco.ProfileLoadAwareRebalancing, member)...)
		errs = append(errs, validateLoadAware(options, member)...)
	}
	if options := spec.Options.HighDensitySwap; options != nil {
		member := path.Child("highDensitySwap")
		errs = append(errs, belongs(spec.Profile, hco.ProfileHighDensitySwap, member)...)
		errs = append(errs, validateSwap(options, member)...)
	}
	if options := spec.Options.NodeHealthRemediation; options != nil {
		member := path.Child("nodeHealthRemediation")
		errs = append(errs, belongs(spec.Profile, hco.ProfileNodeHealthRemediation, member)...)
		errs = append(errs, validateNodeHealth(options, member)...)
	}
	return errs
}

func belongs(profile, to hco.ProfileName, path *field.Path) field.ErrorList {
	if profile == to {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "belongs to profile "+string(to)+", but this is a plan of "+string(profile))}
}

func validateLoadAware(options *hco.LoadAwareRebalancingOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, between(path.Child("deschedulingIntervalSeconds"), options.DeschedulingIntervalSeconds, 60, 86400)...)
	errs = append(errs, between(path.Child("evictionLimitTotal"), options.EvictionLimitTotal, 1, 1000)...)
	errs = append(errs, between(path.Child("evictionLimitNode"), options.EvictionLimitNode, 1, 100)...)
	if options.Mode != "" {
		errs = append(errs, oneOf(path.Child("mode"), options.Mode, hco.DeschedulerAutomatic, hco.DeschedulerPredictive)...)
	}
	if options.DeviationThresholds != "" {
		errs = append(errs, oneOf(path.Child("deviationThresholds"), options.DeviationThresholds, hco.DeviationLow, hco.DeviationMedium, hco.DeviationHigh,
			hco.DeviationAsymmetricLow, hco.DeviationAsymmetricMedium, hco.DeviationAsymmetricHigh)...)
	}
	if total, node := options.EvictionLimitTotal, options.EvictionLimitNode; total != nil && node != nil && *node > *total {
		errs = append(errs, field.Invalid(path.Child("evictionLimitNode"), *node, "must not be above evictionLimitTotal"))
	}
	return errs
}

// validateSwap also refuses options that contradict each other.
func validateSwap(options *hco.HighDensitySwapOptions, path *field.Path) field.ErrorList {
	errs := between(path.Child("memoryToRequestRatio"), options.MemoryToRequestRatio, 100, 300)
	errs = append(errs, between(path.Child("fileSizeMiB"), options.FileSizeMiB, minSwapFile, maxSwapFile)...)
	if options.SwapSource != "" {
		errs = append(errs, oneOf(path.Child("swapSource"), options.SwapSource, hco.SwapSourcePartition, hco.SwapSourceFile)...)
	}
	// The label becomes part of a path and of a systemd unit, so it must not have special
	// characters of these.
	if label := options.PartitionLabel; label != "" && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,35}$`).MatchString(label) {
		errs = append(errs, field.Invalid(path.Child("partitionLabel"), label, "must be 1 to 36 letters, digits, _ and -, and begin with a letter or digit"))
	}
	swap, file := ptr.Deref(options.EnableSwap, true), options.SwapSource == hco.SwapSourceFile
	if ratio := options.MemoryToRequestRatio; ratio != nil && *ratio > maxWithoutSwap && !swap {
		errs = append(errs, field.Invalid(path.Child("memoryToRequestRatio"), *ratio, "must be at most 120 without swap: nodes would run out of memory; set enableSwap"))
	}
	for _, one := range []struct {
		name    string
		set, ok bool
		why     string
	}{
		{"swapSource", options.SwapSource != "", swap, "has no meaning when enableSwap is false"},
		{"partitionLabel", options.PartitionLabel != "", swap && !file, "is for enableSwap with swapSource Partition"},
		{"fileSizeMiB", options.FileSizeMiB != nil, swap && file, "is for enableSwap with swapSource File"},
	} {
		if one.set && !one.ok {
			errs = append(errs, field.Forbidden(path.Child(one.name), one.why))
		}
	}
	if swap && file && options.FileSizeMiB == nil {
		errs = append(errs, field.Required(path.Child("fileSizeMiB"), "required for swapSource File: the file takes this much of the disk of every worker node, so there is no default"))
	}
	return errs
}

func validateNodeHealth(options *hco.NodeHealthRemediationOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if options.Remediator != "" {
		errs = append(errs, oneOf(path.Child("remediator"), options.Remediator, hco.RemediatorAutomatic, hco.RemediatorSelfNode, hco.RemediatorFenceAgents)...)
	}
	if template := options.Template; template != nil {
		errs = append(errs, nameOf(path.Child("template", "namespace"), template.Namespace, apimachineryvalidation.ValidateNamespaceName)...)
		errs = append(errs, nameOf(path.Child("template", "name"), template.Name, apimachineryvalidation.NameIsDNSSubdomain)...)
	}
	errs = append(errs, validateNodeSelector(options.NodeSelector, path.Child("nodeSelector"))...)
	if options.MinHealthy != nil {
		errs = append(errs, validateMinHealthy(*options.MinHealthy, path.Child("minHealthy"))...)
	}
	if len(options.UnhealthyConditions) > maxUnhealthyConditions {
		return append(errs, field.TooMany(path.Child("unhealthyConditions"), len(options.UnhealthyConditions), maxUnhealthyConditions))
	}
	for i, condition := range options.UnhealthyConditions {
		at := path.Child("unhealthyConditions").Index(i)
		if reasons := validation.IsQualifiedName(condition.Type); condition.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), "must be the type of a condition of nodes, such as Ready"))
		} else if len(reasons) > 0 {
			errs = append(errs, field.Invalid(at.Child("type"), condition.Type, reasons[0]))
		}
		errs = append(errs, oneOf(at.Child("status"), condition.Status, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown)...)
		if condition.Type == "Ready" && condition.Status == metav1.ConditionTrue {
			errs = append(errs, field.Invalid(at.Child("status"), condition.Status, "must be False or Unknown for type Ready: otherwise every healthy node would be remediated"))
		}
		errs = append(errs, within(at.Child("duration"), &condition.Duration, time.Second, maxUnhealthyDuration)...)
		if slices.ContainsFunc(options.UnhealthyConditions[:i], func(other hco.UnhealthyCondition) bool {
			return other.Type == condition.Type && other.Status == condition.Status
		}) {
			errs = append(errs, field.Duplicate(at, condition.Type+" "+string(condition.Status)))
		}
	}
	return errs
}

// validateNodeSelector refuses labels of roles: the selector always applies to worker nodes, and
// only includeControlPlane adds control planes.
func validateNodeSelector(selector map[string]string, path *field.Path) field.ErrorList {
	if len(selector) > maxNodeSelector {
		return field.ErrorList{field.TooMany(path, len(selector), maxNodeSelector)}
	}
	errs := unversionedvalidation.ValidateLabels(selector, path)
	for _, role := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker"} {
		if _, set := selector[role]; set {
			errs = append(errs, field.Forbidden(path.Key(role), "workers are selected anyway, and control planes by includeControlPlane only"))
		}
	}
	return errs
}

func validateMinHealthy(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if value.Type == intstr.String {
		if !regexp.MustCompile(`^([1-9]|[1-9][0-9])%$`).MatchString(value.StrVal) {
			return field.ErrorList{field.Invalid(path, value.StrVal, "must be a number, or a share from 1% to 99%")}
		}
		return nil
	}
	if value.IntVal < 1 || value.IntVal > 10000 {
		return field.ErrorList{field.Invalid(path, value.IntVal, "must be between 1 and 10000, or a share such as 51%")}
	}
	return nil
}

func nameOf(path *field.Path, value string, check apimachineryvalidation.ValidateNameFunc) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, reason := range check(value, false) {
		errs = append(errs, field.Invalid(path, value, reason))
	}
	return errs
}
