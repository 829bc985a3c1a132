package chartkind

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/note"
)

// Limits of a ChartKind, and of the values and objects that are rendered for a custom resource.
const (
	MaxValues           = 128
	MaxInputs           = 16
	MaxGeneratedSecrets = 32
	// MaxPath limits the length of a path in bytes, and MaxExpression the length of an expression.
	MaxPath       = 256
	MaxExpression = 4096
	// MaxNotes limits the stored part of NOTES.txt, in bytes, because kubectl shows it as a column.
	MaxNotes = 1024
)

// pathPattern matches paths: names separated by dots.
var pathPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// Validate returns the errors of a ChartKind, except errors in expressions, which package mapping
// compiles. Old is nil on create.
func Validate(spec, old *Spec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateResource(spec.Resource, path.Child("resource"))
	if old != nil && old.Resource.GVK() != spec.Resource.GVK() {
		errs = append(errs, field.Invalid(path.Child("resource"), spec.Resource.GVK().String(),
			fmt.Sprintf("cannot be changed: it was %s; make another ChartKind", old.Resource.GVK())))
	}
	if named, err := reference.ParseNormalizedNamed(spec.Chart.Ref); err != nil || reference.IsNameOnly(named) {
		errs = append(errs, field.Invalid(path.Child("chart", "ref"), spec.Chart.Ref, "must be registry[:port]/repository, and :tag or @algorithm:digest"))
	}
	account := path.Child("serviceAccount")
	errs = append(errs, label(spec.ServiceAccount.Namespace, account.Child("namespace"))...)
	errs = append(errs, subdomain(spec.ServiceAccount.Name, account.Child("name"))...)
	if spec.Namespace != "" {
		errs = append(errs, label(spec.Namespace, path.Child("namespace"))...)
	}
	if allowed := []string{ApprovalAutomatic, ApprovalReviewed, ApprovalManual}; spec.UpgradeApproval != "" && !slices.Contains(allowed, spec.UpgradeApproval) {
		errs = append(errs, field.NotSupported(path.Child("upgradeApproval"), spec.UpgradeApproval, allowed))
	}
	if _, err := note.ParseHoldOn(spec.HoldOn); err != nil {
		errs = append(errs, field.Invalid(path.Child("holdOn"), strings.Join(spec.HoldOn, ", "), err.Error()))
	}
	if minutes := spec.ProgressDeadlineMinutes; minutes < 0 || minutes > 720 {
		errs = append(errs, field.Invalid(path.Child("progressDeadlineMinutes"), minutes, "must be 0 (no deadline) to 720"))
	}
	errs = append(errs, validateValues(spec.Values, path.Child("values"))...)
	errs = append(errs, validateInputs(spec.Inputs, path.Child("inputs"))...)
	if count := len(spec.GeneratedSecrets); count > MaxGeneratedSecrets {
		errs = append(errs, field.TooMany(path.Child("generatedSecrets"), count, MaxGeneratedSecrets))
	}
	for i, name := range spec.GeneratedSecrets {
		errs = append(errs, subdomain(name, path.Child("generatedSecrets").Index(i))...)
	}
	return errs
}

func validateResource(resource ResourceKind, path *field.Path) field.ErrorList {
	errs := subdomain(resource.Group, path.Child("group"))
	if !strings.Contains(resource.Group, ".") {
		errs = append(errs, field.Invalid(path.Child("group"), resource.Group, "must be the group of a CustomResourceDefinition, such as platform.example.com"))
	}
	if resource.Group == Resource.Group {
		errs = append(errs, field.Invalid(path.Child("group"), resource.Group, "must not be the group of ChartKinds"))
	}
	return append(errs, validateKind(resource.Version, resource.Kind, resource.Plural, path)...)
}

func validateKind(version, kind, plural string, path *field.Path) field.ErrorList {
	errs := label(version, path.Child("version"))
	if problems := validation.IsDNS1035Label(strings.ToLower(kind)); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), kind, "must be a kind: "+strings.Join(problems, "; ")))
	}
	if plural != "" {
		errs = append(errs, label(plural, path.Child("plural"))...)
	}
	return errs
}

func validateValues(values []Value, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(values) > MaxValues {
		errs = append(errs, field.TooMany(path, len(values), MaxValues))
	}
	for i, value := range values {
		at := path.Index(i)
		errs = append(errs, validatePath(value.To, at.Child("to"))...)
		switch {
		case value.From == "" && value.Expression == "":
			errs = append(errs, field.Required(at.Child("from"), "from or expression must be set"))
		case value.From != "" && value.Expression != "":
			errs = append(errs, field.Invalid(at.Child("expression"), value.Expression, "must not be set beside from"))
		case value.From != "":
			errs = append(errs, validatePath(value.From, at.Child("from"))...)
			if value.From == "status" || strings.HasPrefix(value.From, "status.") {
				errs = append(errs, field.Invalid(at.Child("from"), value.From, "must not be a field of status: status does not decide the installed objects"))
			}
		}
		for _, other := range values[:min(i, MaxValues)] {
			if value.To == other.To {
				errs = append(errs, field.Duplicate(at.Child("to"), value.To))
			} else if strings.HasPrefix(value.To, other.To+".") || strings.HasPrefix(other.To, value.To+".") {
				errs = append(errs, field.Invalid(at.Child("to"), value.To, "must not overlap with "+other.To+" of another value"))
			}
		}
	}
	return errs
}

func validateInputs(inputs []Input, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(inputs) > MaxInputs {
		errs = append(errs, field.TooMany(path, len(inputs), MaxInputs))
	}
	names := map[string]bool{}
	for i, input := range inputs {
		at := path.Index(i)
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`).MatchString(input.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), input.Name, "must be a name that expressions can spell: letters, digits and _, at most 63"))
		}
		if names[input.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), input.Name))
		}
		names[input.Name] = true
		errs = append(errs, validateKind(input.Version, input.Kind, input.Plural, at)...)
		if input.NameFrom != "" {
			errs = append(errs, validatePath(input.NameFrom, at.Child("nameFrom"))...)
		}
	}
	return errs
}

func validatePath(text string, path *field.Path) field.ErrorList {
	if len(text) > MaxPath {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, MaxPath)}
	}
	if !pathPattern.MatchString(text) {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be names of fields with dots between them, such as spec.size, at most %d bytes", MaxPath))}
	}
	return nil
}

func label(text string, path *field.Path) field.ErrorList {
	if problems := validation.IsDNS1123Label(text); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, text, strings.Join(problems, "; "))}
	}
	return nil
}

func subdomain(text string, path *field.Path) field.ErrorList {
	if problems := validation.IsDNS1123Subdomain(text); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, text, strings.Join(problems, "; "))}
	}
	return nil
}
