package cel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// PluralOf returns the plural name and the group from the name of a definition.
func PluralOf(definition string) (plural, group string) {
	plural, group, _ = strings.Cut(definition, ".")
	return plural, group
}

// identifier reports whether expressions can use a name.
func identifier(name string) bool {
	return len(name) <= 63 && regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(name)
}

// validateForm checks everything except the expressions.
func validateForm(spec *v1alpha1.ConfigurationProfileDefinitionSpec, path *field.Path) field.ErrorList {
	if raw, err := json.Marshal(spec); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	} else if len(raw) > maxSpecBytes {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxSpecBytes)}
	}
	errs := requiredText(spec.Description, path.Child("description"), maxTextBytes)
	errs = append(errs, bounded(len(spec.Requirements), 1, maxRequirements, path.Child("requirements"))...)
	errs = append(errs, bounded(len(spec.Items), 1, maxItems, path.Child("items"))...)
	errs = append(errs, bounded(len(spec.Variables), 0, maxVariables, path.Child("variables"))...)
	errs = append(errs, bounded(len(spec.Prerequisites), 0, maxChecks, path.Child("prerequisites"))...)
	errs = append(errs, bounded(len(spec.Validations), 0, maxChecks, path.Child("validations"))...)
	if len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateRequirements(spec, path.Child("requirements"))...)
	seen := map[string]bool{}
	for i, variable := range spec.Variables {
		at := path.Child("variables").Index(i)
		errs = append(errs, named(variable.Name, seen, at.Child("name"))...)
		errs = append(errs, requiredText(variable.Expression, at.Child("expression"), maxExpressionBytes)...)
	}
	for list, checks := range map[string][]v1alpha1.DefinitionCheck{"prerequisites": spec.Prerequisites, "validations": spec.Validations} {
		for i, check := range checks {
			at := path.Child(list).Index(i)
			errs = append(errs, requiredText(check.Expression, at.Child("expression"), maxExpressionBytes)...)
			errs = append(errs, requiredText(check.Message, at.Child("message"), maxTextBytes)...)
		}
	}
	return append(errs, validateItems(spec, path.Child("items"))...)
}

func validateRequirements(spec *v1alpha1.ConfigurationProfileDefinitionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, definitions := map[string]bool{}, map[string]v1alpha1.DefinitionAccess{}
	for i, requirement := range spec.Requirements {
		at := path.Index(i)
		errs = append(errs, named(requirement.Name, seen, at.Child("name"))...)
		errs = append(errs, requiredText(requirement.Install, at.Child("install"), maxTextBytes)...)
		if problems := validation.IsDNS1035Label(strings.ToLower(requirement.Kind)); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("kind"), requirement.Kind, "must be the kind that the definition defines"))
		}
		errs = append(errs, validateDefinition(requirement.Definition, at.Child("definition"))...)
		if _, twice := definitions[requirement.Definition]; twice {
			errs = append(errs, field.Duplicate(at.Child("definition"), requirement.Definition))
		}
		definitions[requirement.Definition] = requirement.Access
		switch requirement.Access {
		case v1alpha1.AccessSchema, v1alpha1.AccessRead, v1alpha1.AccessWrite:
		default:
			errs = append(errs, field.NotSupported(at.Child("access"), requirement.Access, []v1alpha1.DefinitionAccess{v1alpha1.AccessSchema, v1alpha1.AccessRead, v1alpha1.AccessWrite}))
		}
		errs = append(errs, bounded(len(requirement.Fields), 0, maxFields, at.Child("fields"))...)
		paths := map[string]bool{}
		for j, one := range requirement.Fields {
			if !regexp.MustCompile(`^[A-Za-z0-9_-]+(\[\])?(\.[A-Za-z0-9_-]+(\[\])?)*$`).MatchString(one.Path) || len(one.Path) > 256 {
				errs = append(errs, field.Invalid(at.Child("fields").Index(j).Child("path"), one.Path, "must be names with dots between them, such as spec.profiles[]"))
			}
			if paths[one.Path] {
				errs = append(errs, field.Duplicate(at.Child("fields").Index(j).Child("path"), one.Path))
			}
			paths[one.Path] = true
		}
	}
	return append(errs, validateRollout(spec, definitions, path)...)
}

// validateRollout requires read access to the kinds that a rollout to nodes depends on: the pools,
// and for a KubeletConfig also the generated MachineConfig.
func validateRollout(spec *v1alpha1.ConfigurationProfileDefinitionSpec, declared map[string]v1alpha1.DefinitionAccess, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	needs := func(name, why string, plural string) {
		definition := plural + "." + profile.MachineConfigKind().Group
		if access := declared[definition]; access != v1alpha1.AccessRead && access != v1alpha1.AccessWrite {
			errs = append(errs, field.Required(path, fmt.Sprintf("requirement %s is %s: declare %s with access Read", name, why, definition)))
		}
	}
	for _, requirement := range spec.Requirements {
		plural, group := PluralOf(requirement.Definition)
		if group != profile.MachineConfigKind().Group || requirement.Access != v1alpha1.AccessWrite {
			continue
		}
		needs(requirement.Name, "rolled out by MachineConfigPools, which the plan waits for", "machineconfigpools")
		if plural == "kubeletconfigs" {
			needs(requirement.Name, "made into a MachineConfig, which the plan waits for", "machineconfigs")
		}
	}
	return errs
}

func validateDefinition(name string, path *field.Path) field.ErrorList {
	plural, group := PluralOf(name)
	if group == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, "must be the name of a CustomResourceDefinition: plural.group")}
	}
	if reason := Forbidden(plural, group); reason != "" {
		return field.ErrorList{field.Forbidden(path, name+" cannot be declared: "+reason)}
	}
	return nil
}

func validateItems(spec *v1alpha1.ConfigurationProfileDefinitionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, targets := map[string]bool{}, map[v1alpha1.DefinitionTarget]bool{}
	for i, item := range spec.Items {
		at := path.Index(i)
		if problems := validation.IsDNS1123Label(item.Name); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), item.Name, strings.Join(problems, ", ")))
		}
		if seen[item.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), item.Name))
		}
		seen[item.Name] = true
		if access := accessOf(spec, item.Target.Requirement); access != v1alpha1.AccessWrite {
			errs = append(errs, field.Invalid(at.Child("target", "requirement"), item.Target.Requirement, "must be the name of a requirement with access Write"))
		}
		for _, problem := range apimachineryvalidation.NameIsDNSSubdomain(item.Target.Name, false) {
			errs = append(errs, field.Invalid(at.Child("target", "name"), item.Target.Name, problem))
		}
		if item.Target.Namespace != "" {
			for _, problem := range apimachineryvalidation.ValidateNamespaceName(item.Target.Namespace, false) {
				errs = append(errs, field.Invalid(at.Child("target", "namespace"), item.Target.Namespace, problem))
			}
		}
		if targets[item.Target] {
			errs = append(errs, field.Duplicate(at.Child("target"), item.Target.Name))
		}
		targets[item.Target] = true
		for name, expression := range map[string]string{"object": item.Object, "impact": item.Impact, "reason": item.Reason} {
			errs = append(errs, requiredText(expression, at.Child(name), maxExpressionBytes)...)
		}
		for name, expression := range map[string]string{"when": item.When, "notes": item.Notes} {
			if len(expression) > maxExpressionBytes {
				errs = append(errs, field.TooLong(at.Child(name), field.OmitValueType{}, maxExpressionBytes))
			}
		}
		if blast := item.BlastRadius; blast != nil {
			errs = append(errs, requiredText(blast.Pools, at.Child("blastRadius", "pools"), maxExpressionBytes)...)
		}
		errs = append(errs, bounded(len(item.Waits), 0, maxWaits, at.Child("waits"))...)
		for j, wait := range item.Waits {
			errs = append(errs, requiredText(wait.Expression, at.Child("waits").Index(j).Child("expression"), maxExpressionBytes)...)
			errs = append(errs, requiredText(wait.Message, at.Child("waits").Index(j).Child("message"), maxTextBytes)...)
		}
	}
	return errs
}

func accessOf(spec *v1alpha1.ConfigurationProfileDefinitionSpec, name string) v1alpha1.DefinitionAccess {
	for _, requirement := range spec.Requirements {
		if requirement.Name == name {
			return requirement.Access
		}
	}
	return ""
}

func named(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	defer func() { seen[name] = true }()
	switch {
	case !identifier(name):
		return field.ErrorList{field.Invalid(path, name, "must be a name that expressions can use: letters, digits and _, at most 63")}
	case seen[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	return nil
}

func requiredText(value string, path *field.Path, most int) field.ErrorList {
	switch {
	case strings.TrimSpace(value) == "":
		return field.ErrorList{field.Required(path, "")}
	case len(value) > most:
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, most)}
	}
	return nil
}

func bounded(n, least, most int, path *field.Path) field.ErrorList {
	switch {
	case n < least:
		return field.ErrorList{field.Required(path, fmt.Sprintf("must have at least %d", least))}
	case n > most:
		return field.ErrorList{field.TooMany(path, n, most)}
	}
	return nil
}
