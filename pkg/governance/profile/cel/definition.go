package cel

import (
	"context"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/rollout/probe/expression"
)

// Definition is a compiled definition.
type Definition struct {
	spec    *v1alpha1.ConfigurationProfileDefinitionSpec
	options *optionsSchema
	// programs by the paths of their expressions.
	programs map[string]*expression.Program
}

// Compile compiles a stored definition. It does not repeat the checks of Validate, so that a stored
// definition stays valid.
func Compile(spec *v1alpha1.ConfigurationProfileDefinitionSpec) (*Definition, error) {
	d, errs := compile(spec, false)
	return d, errs.ToAggregate()
}

// Validate returns the errors of a new definition: its form, expressions that do not compile or
// cost too much, and options that expressions use and the schema lacks.
func Validate(spec *v1alpha1.ConfigurationProfileDefinitionSpec, path *field.Path) field.ErrorList {
	if errs := validateForm(spec, path); len(errs) > 0 {
		return errs
	}
	d, errs := compile(spec, true)
	if len(errs) > 0 {
		return under(path, errs)
	}
	return under(path, append(d.estimate(), d.checkTypes(nil)...))
}

// under prefixes the fields of errors with a path.
func under(path *field.Path, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = path.String() + "." + err.Field
	}
	return errs
}

// role is the purpose of an expression: the variables that it may use, and the type of its result.
type role struct {
	path   *field.Path
	text   string
	names  []string
	result *celgo.Type
	// requirement of the object live; empty if the expression cannot use live.
	requirement string
	// variable that the expression defines; empty for none.
	variable string
}

func (r role) key() string { return r.path.String() }

// roles returns all expressions of a definition, in the order of their evaluation.
func roles(spec *v1alpha1.ConfigurationProfileDefinitionSpec) []role {
	var all []role
	for i, check := range spec.Validations {
		all = append(all, role{path: at("validations", i, "expression"), text: check.Expression, names: []string{"options"}, result: celgo.BoolType})
	}
	shared := []string{"facts", "options", "variables"}
	for i, variable := range spec.Variables {
		all = append(all, role{path: at("variables", i, "expression"), text: variable.Expression, names: shared, variable: variable.Name})
	}
	for i, check := range spec.Prerequisites {
		all = append(all, role{path: at("prerequisites", i, "expression"), text: check.Expression, names: shared, result: celgo.BoolType})
	}
	live := append(shared[:3:3], "live")
	blast := append(live[:4:4], "blast")
	for i, item := range spec.Items {
		add := func(text, name string, names []string, result *celgo.Type) {
			if text != "" {
				all = append(all, role{path: at("items", i, name), text: text, names: names, result: result, requirement: item.Target.Requirement})
			}
		}
		add(item.When, "when", live, celgo.BoolType)
		add(item.Object, "object", live, celgo.MapType(celgo.StringType, celgo.DynType))
		if item.BlastRadius != nil {
			add(item.BlastRadius.Pools, "blastRadius.pools", live, celgo.ListType(celgo.DynType))
			add(item.BlastRadius.Reboot, "blastRadius.reboot", live, celgo.BoolType)
		}
		add(item.Impact, "impact", blast, celgo.StringType)
		add(item.Reason, "reason", blast, celgo.StringType)
		add(item.Notes, "notes", blast, celgo.ListType(celgo.DynType))
		for j, wait := range item.Waits {
			waits := fmt.Sprintf("waits[%d].", j)
			add(wait.Expression, waits+"expression", live, celgo.BoolType)
			add(wait.MessageExpression, waits+"messageExpression", live, celgo.StringType)
		}
	}
	return all
}

func at(list string, i int, name string) *field.Path { return field.NewPath(list).Index(i).Child(name) }

func compile(spec *v1alpha1.ConfigurationProfileDefinitionSpec, checking bool) (*Definition, field.ErrorList) {
	d := &Definition{spec: spec, programs: map[string]*expression.Program{}}
	options, errs := newSchema(spec.Options, field.NewPath("options"))
	d.options = options
	compilers := map[int]*expression.Compiler{}
	for _, role := range roles(spec) {
		// Each role has the names of the roles before it, so the number of names identifies them.
		compiler := compilers[len(role.names)]
		if compiler == nil {
			compiler = &expression.Compiler{Checking: checking, JSON: true, Variables: role.names}
			compilers[len(role.names)] = compiler
		}
		program, err := compiler.Compile(role.text)
		if err != nil {
			errs = append(errs, field.Invalid(role.path, clip(role.text), err.Error()))
			continue
		}
		d.programs[role.key()] = program
	}
	return d, errs
}

func kindOf(requirement v1alpha1.DefinitionRequirement) schema.GroupKind {
	_, group := PluralOf(requirement.Definition)
	return schema.GroupKind{Group: group, Kind: requirement.Kind}
}

// evaluation is one computation of a profile. All of its expressions share a budget.
type evaluation struct {
	*Definition
	budget *expression.CostBudget
	// known are the values of facts, options and variables.
	known map[string]any
}

// evaluate computes the variables, which the expressions of items use.
func (d *Definition) evaluate(facts profile.Facts, raw *v1alpha1.JSONObject, units uint64) (*evaluation, error) {
	options, errs := d.Options(raw, field.NewPath("spec", "options", "values"))
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	variables := map[string]any{}
	e := &evaluation{Definition: d, budget: expression.NewCostBudget(units), known: map[string]any{
		"facts": factsOf(d.spec.Requirements, facts), "options": options, "variables": variables,
	}}
	for i, variable := range d.spec.Variables {
		value, err := e.value(at("variables", i, "expression"), nil)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		variables[variable.Name] = value
	}
	return e, nil
}

// value evaluates the expression at a path. more has variables in addition to known.
func (e *evaluation) value(path *field.Path, more map[string]any) (any, error) {
	names := map[string]any{}
	for name, value := range e.known {
		names[name] = value
	}
	for name, value := range more {
		names[name] = value
	}
	return e.programs[path.String()].Value(context.Background(), names, e.budget)
}

// Options returns options with their defaults, and their errors.
func (d *Definition) Options(raw *v1alpha1.JSONObject, path *field.Path) (map[string]any, field.ErrorList) {
	options, errs := d.options.complete(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	budget := expression.NewCostBudget(maxUnits)
	for i, check := range d.spec.Validations {
		holds, err := d.programs[at("validations", i, "expression").String()].Value(context.Background(), map[string]any{"options": options}, budget)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("%s (%s)", check.Message, err)))
		case holds != true:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, check.Message))
		}
	}
	return options, errs
}

// Documented returns the options with their descriptions.
func (d *Definition) Documented() []v1alpha1.ProfileOption { return d.options.document() }

// anew returns the same evaluation with a new budget.
func (e *evaluation) anew(units uint64) *evaluation {
	return &evaluation{Definition: e.Definition, budget: expression.NewCostBudget(units), known: e.known}
}
