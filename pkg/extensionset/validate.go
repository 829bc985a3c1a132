package extensionset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/window"
)

const (
	// MaxWaves bounds the waves of a set.
	MaxWaves = 32
	// MaxOverrides bounds the overrides of a set.
	MaxOverrides = 64
	// MaxSeconds bounds the soak time of a wave and the deadline of a cluster: 30 days.
	MaxSeconds = 30 * 24 * 60 * 60
)

// Validate returns the faults of a set.
func Validate(set *Set) field.ErrorList {
	var errs field.ErrorList
	if problems := validation.IsDNS1123Label(set.Name); len(problems) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, strings.Join(problems, "; ")))
	}
	path := field.NewPath("spec")
	errs = append(errs, selector(&set.Spec.ClusterSelector, path.Child("clusterSelector"), false)...)
	errs = append(errs, template(&set.Spec.Template, path.Child("template"))...)
	errs = append(errs, overrides(&set.Spec, path.Child("overrides"))...)
	for name, value := range map[string]string{"removalPolicy": set.Spec.RemovalPolicy, "teardownPolicy": set.Spec.TeardownPolicy} {
		if policies := []string{PolicyRetain, PolicyDelete}; value != "" && !slices.Contains(policies, value) {
			errs = append(errs, field.NotSupported(path.Child(name), value, policies))
		}
	}
	return append(errs, strategy(&set.Spec.Strategy, path.Child("strategy"))...)
}

func selector(s *metav1.LabelSelector, path *field.Path, empty bool) field.ErrorList {
	if !empty && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(path, "must name labels: an empty selector chooses every cluster")}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

// template rejects fields that children must not have: the target cluster, and decisions that
// belong to the set.
func template(t *Template, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(t.Spec) == 0 {
		errs = append(errs, field.Required(path.Child("spec"), "must be the spec of a ClusterExtension"))
	}
	annotations := path.Child("metadata", "annotations")
	for _, name := range append(extension.ChildAnnotations(), extension.CatalogAnnotation, extension.ApprovalAnnotation, extension.HoldOnAnnotation, extension.RequiresAnnotation, extension.AcknowledgeDependentsAnnotation) {
		if _, found := t.Metadata.Annotations[name]; found {
			errs = append(errs, field.Forbidden(annotations.Key(name), "the set decides it for its children"))
		}
	}
	if len(errs) == 0 {
		_, faults := extension.ParsePolicy(t.Metadata.Annotations)
		errs = append(errs, faults...)
	}
	return errs
}

func overrides(s *Spec, path *field.Path) field.ErrorList {
	if len(s.Overrides) > MaxOverrides {
		return field.ErrorList{field.TooMany(path, len(s.Overrides), MaxOverrides)}
	}
	var errs field.ErrorList
	kind, _, _ := unstructured.NestedString(s.Template.Spec, "source", "sourceType")
	for i := range s.Overrides {
		one, path := &s.Overrides[i], path.Index(i)
		switch {
		case (one.ClusterSelector == nil) == (len(one.ClusterNames) == 0):
			errs = append(errs, field.Required(path, "must have exactly one of clusterSelector and clusterNames"))
		case one.ClusterSelector != nil:
			errs = append(errs, selector(one.ClusterSelector, path.Child("clusterSelector"), false)...)
		}
		for j, name := range one.ClusterNames {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				errs = append(errs, field.Invalid(path.Child("clusterNames").Index(j), name, "must be the name of a Secret: "+strings.Join(problems, "; ")))
			}
		}
		if len(one.Config) == 0 && one.Version == "" {
			errs = append(errs, field.Required(path, "must have config or version"))
		}
		if one.Version == "" {
			continue
		}
		if kind != extension.SourceCatalog {
			errs = append(errs, field.Forbidden(path.Child("version"), fmt.Sprintf("only a template with the source %s has a version, found %s", extension.SourceCatalog, kind)))
		} else if _, err := semver.NewConstraint(one.Version); err != nil {
			errs = append(errs, field.Invalid(path.Child("version"), one.Version, "must be a version or a range of versions, such as 1.2.3 or 1.x"))
		}
	}
	return errs
}

func strategy(s *Strategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.DeadlineSeconds < 0 || s.DeadlineSeconds > MaxSeconds {
		errs = append(errs, field.Invalid(path.Child("deadlineSeconds"), s.DeadlineSeconds, fmt.Sprintf("must be between 0, for the default, and %d", MaxSeconds)))
	}
	if len(s.Waves) > MaxWaves {
		return append(errs, field.TooMany(path.Child("waves"), len(s.Waves), MaxWaves))
	}
	names := map[string]bool{}
	for i := range s.Waves {
		wave, path := &s.Waves[i], path.Child("waves").Index(i)
		if problems := validation.IsDNS1123Label(wave.Name); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Child("name"), wave.Name, strings.Join(problems, "; ")))
		}
		if names[wave.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), wave.Name))
		}
		names[wave.Name] = true
		errs = append(errs, selector(&wave.ClusterSelector, path.Child("clusterSelector"), i == len(s.Waves)-1)...)
		if !slices.Contains([]string{"", ApprovalAutomatic, ApprovalRequired}, wave.Approval) {
			errs = append(errs, field.NotSupported(path.Child("approval"), wave.Approval, []string{ApprovalAutomatic, ApprovalRequired}))
		}
		if wave.MaxFailures < 0 {
			errs = append(errs, field.Invalid(path.Child("maxFailures"), wave.MaxFailures, "must be 0 or more"))
		}
		if wave.SoakSeconds < 0 || wave.SoakSeconds > MaxSeconds {
			errs = append(errs, field.Invalid(path.Child("soakSeconds"), wave.SoakSeconds, fmt.Sprintf("must be between 0 and %d", MaxSeconds)))
		}
		if _, err := bound(wave.MaxUnavailable, "1", 1, 1); err != nil {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), wave.MaxUnavailable.String(), err.Error()))
		}
		if _, err := bound(wave.MaxUnreachable, "10%", 1, 0); err != nil {
			errs = append(errs, field.Invalid(path.Child("maxUnreachable"), wave.MaxUnreachable.String(), err.Error()))
		}
		if of := wave.Window; of != nil {
			errs = append(errs, window.Validate(of.Schedule, of.TimeZone, of.Duration.Duration, path.Child("window"))...)
		}
	}
	return errs
}

// bound returns the number of clusters for a value of a wave, or for the default usual.
func bound(value *intstr.IntOrString, usual string, clusters, least int) (int, error) {
	text := usual
	if value != nil {
		text = value.String()
	}
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0, errNumber
	}
	return fleet.Number(number, percent, clusters, least)
}

// Bounds returns the bounds of a wave that has this many clusters.
func (w *Wave) Bounds(clusters int) (fleet.Bounds, error) {
	unavailable, err := bound(w.MaxUnavailable, "1", clusters, 1)
	if err != nil {
		return fleet.Bounds{}, err
	}
	unreachable, err := bound(w.MaxUnreachable, "10%", clusters, 0)
	return fleet.Bounds{MaxUnavailable: unavailable, MaxFailures: int(w.MaxFailures), MaxUnreachable: unreachable}, err
}

var errNumber = errors.New("must be a number, or a percentage such as 10%")
