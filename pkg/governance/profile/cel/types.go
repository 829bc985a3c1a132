package cel

import (
	"encoding/json"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/rollout/probe/expression"
)

// Warnings returns the expressions that do not match the schemas of a cluster: unknown fields, or
// values of other types. It skips kinds that are not served. They are not errors, because the
// schemas may change before a plan is computed.
func (d *Definition) Warnings(facts profile.Facts) []string {
	var warnings []string
	for _, err := range d.checkTypes(&facts) {
		warnings = append(warnings, err.Field+": "+err.Detail)
	}
	for _, requirement := range d.spec.Requirements {
		definition, served := facts.Definitions[requirement.Definition]
		for _, one := range requirement.Fields {
			if there, _ := fieldOf(definition.Preferred().Schema, one.Path); served && !there && !one.Optional {
				warnings = append(warnings, "requirements["+requirement.Name+"].fields: "+requirement.Kind+" of this cluster has no field "+one.Path+": plans will wait in PrerequisiteFailed")
			}
		}
	}
	return warnings
}

// checkTypes checks all expressions with the known types: the types of options, and, if facts is
// set, the types of the cluster.
func (d *Definition) checkTypes(facts *profile.Facts) field.ErrorList {
	known := &typed{definition: d, variables: map[string]*apiservercel.DeclType{}}
	known.options = model.SchemaDeclType(d.options.structural, false)
	if known.options != nil {
		known.options = known.options.MaybeAssignTypeName("Options")
	}
	known.facts(facts)
	var errs field.ErrorList
	for _, role := range roles(d.spec) {
		env, err := known.env(role)
		if err != nil {
			return append(errs, field.InternalError(role.path, err))
		}
		ast, issues := env.Compile(role.text)
		if issues.Err() != nil {
			errs = append(errs, field.Invalid(role.path, clip(role.text), told(issues)))
			continue
		}
		if out := ast.OutputType(); role.result != nil && !role.result.IsAssignableType(out) && !out.IsExactType(celgo.DynType) && !dynamic(out) {
			errs = append(errs, field.Invalid(role.path, clip(role.text), "is of type "+out.String()+", must be of type "+role.result.String()))
			continue
		}
		if role.variable != "" {
			known.variables[role.variable] = known.declOf(ast.OutputType())
		}
	}
	return errs
}

// dynamic reports whether a value of this type can have another type at run time.
func dynamic(kind *celgo.Type) bool {
	switch kind.Kind() {
	case celgo.DynKind, celgo.AnyKind, celgo.TypeParamKind, celgo.StructKind, celgo.MapKind, celgo.ListKind, celgo.NullTypeKind:
		return true
	default:
		return strings.HasPrefix(kind.TypeName(), "wrapper(")
	}
}

// told returns the first issues in one line.
func told(issues *celgo.Issues) string {
	var parts []string
	for _, issue := range issues.Errors() {
		if len(parts) == 5 {
			break
		}
		parts = append(parts, strings.Join(strings.Fields(issue.Message), " "))
	}
	return strings.Join(parts, "; ")
}

// typed has the types of the variables of expressions.
type typed struct {
	definition *Definition
	options    *apiservercel.DeclType
	all        *apiservercel.DeclType
	// objects by the name of their requirement; DynType if the schema is unknown.
	objects   map[string]*apiservercel.DeclType
	variables map[string]*apiservercel.DeclType
}

// facts sets the types of facts.
func (t *typed) facts(facts *profile.Facts) {
	t.objects = map[string]*apiservercel.DeclType{}
	fields := map[string]*apiservercel.DeclField{}
	for _, requirement := range t.definition.spec.Requirements {
		object := apiservercel.DynType
		if facts != nil {
			object = objectType(requirement.Name, facts.Definitions[requirement.Definition].Preferred())
		}
		t.objects[requirement.Name] = object
		one := apiservercel.NewObjectType("Facts."+requirement.Name+"_", fieldsOf(map[string]*apiservercel.DeclType{
			"served": apiservercel.BoolType, "version": apiservercel.StringType, "objects": apiservercel.NewListType(object, -1),
			"fields": apiservercel.NewMapType(apiservercel.StringType, apiservercel.NewObjectType("Facts."+requirement.Name+"_.field", fieldsOf(map[string]*apiservercel.DeclType{
				"served": apiservercel.BoolType, "enum": apiservercel.NewListType(apiservercel.DynType, -1),
			})), -1),
		}))
		fields[requirement.Name] = apiservercel.NewDeclField(requirement.Name, one, true, nil, nil)
	}
	t.all = apiservercel.NewObjectType("Facts", fields)
}

func fieldsOf(types map[string]*apiservercel.DeclType) map[string]*apiservercel.DeclField {
	fields := map[string]*apiservercel.DeclField{}
	for name, kind := range types {
		fields[name] = apiservercel.NewDeclField(name, kind, true, nil, nil)
	}
	return fields
}

// objectType returns the type of the objects of a version, as far as its schema defines it.
func objectType(name string, version profile.Version) *apiservercel.DeclType {
	if len(version.Schema) == 0 {
		return apiservercel.DynType
	}
	raw, err := json.Marshal(version.Schema)
	if err != nil {
		return apiservercel.DynType
	}
	props, internal := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if json.Unmarshal(raw, props) != nil || apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil) != nil {
		return apiservercel.DynType
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil || structural.XPreserveUnknownFields {
		return apiservercel.DynType
	}
	kind := model.SchemaDeclType(model.WithTypeAndObjectMeta(structural), true)
	if kind == nil {
		return apiservercel.DynType
	}
	return kind.MaybeAssignTypeName("Object." + name)
}

// env returns the environment of one expression.
func (t *typed) env(role role) (*celgo.Env, error) {
	env, err := celgo.NewEnv(expression.Functions()...)
	if err != nil {
		return nil, err
	}
	var roots []*apiservercel.DeclType
	var declared []celgo.EnvOption
	for _, name := range role.names {
		kind := apiservercel.DynType
		switch name {
		case "options":
			kind = t.options
		case "facts":
			kind = t.all
		case "variables":
			kind = apiservercel.NewObjectType("Variables", fieldsOf(t.variables))
		case "live":
			if found := t.objects[role.requirement]; found != nil {
				kind = found
			}
		}
		if kind == nil {
			kind = apiservercel.DynType
		}
		if kind.IsObject() {
			roots = append(roots, kind)
		}
		declared = append(declared, celgo.Variable(name, kind.CelType()))
	}
	provider := apiservercel.NewDeclTypeProvider(roots...)
	options, err := provider.EnvOptions(env.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	return env.Extend(append(options, declared...)...)
}

// declOf returns the declared type of a variable from the type of its expression.
func (t *typed) declOf(kind *celgo.Type) *apiservercel.DeclType {
	switch {
	case kind.IsExactType(celgo.BoolType):
		return apiservercel.BoolType
	case kind.IsExactType(celgo.StringType):
		return apiservercel.StringType
	case kind.IsExactType(celgo.IntType):
		return apiservercel.IntType
	case kind.Kind() == celgo.ListKind:
		return apiservercel.NewListType(apiservercel.DynType, -1)
	default:
		return apiservercel.DynType
	}
}
