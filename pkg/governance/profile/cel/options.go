package cel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// optionsSchema is an OpenAPI schema of options, in the form of CustomResourceDefinitions.
type optionsSchema struct {
	props      *apiextensionsv1.JSONSchemaProps
	structural *structuralschema.Structural
	validator  apivalidation.SchemaValidator
}

// newSchema reads a schema. Without a schema there are no options.
func newSchema(raw *v1alpha1.JSONObject, path *field.Path) (*optionsSchema, field.ErrorList) {
	s := &optionsSchema{props: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	if raw != nil && len(raw.Raw) > 0 {
		s.props = &apiextensionsv1.JSONSchemaProps{}
		decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(s.props); err != nil {
			return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an OpenAPI v3 schema: "+err.Error())}
		}
	}
	if s.props.Type != "object" {
		return nil, field.ErrorList{field.Invalid(path.Child("type"), s.props.Type, "must be object: options have names")}
	}
	if err := withoutExtensions(s.props, path); err != nil {
		return nil, field.ErrorList{err}
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.props, internal, nil); err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var err error
	if s.structural, err = structuralschema.NewStructural(internal); err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a structural schema: "+err.Error())}
	}
	if errs := structuralschema.ValidateStructural(path, s.structural); len(errs) > 0 {
		return nil, errs
	}
	if s.validator, _, err = apivalidation.NewSchemaValidator(internal); err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	errs, err := defaulting.ValidateDefaults(context.Background(), path, s.structural, false, true)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return s, errs
}

// withoutExtensions refuses features that apply to custom resources only. CEL rules belong in
// spec.validations of the definition, which have a separate budget.
func withoutExtensions(props *apiextensionsv1.JSONSchemaProps, path *field.Path) *field.Error {
	switch {
	case len(props.XValidations) > 0:
		return field.Forbidden(path.Child("x-kubernetes-validations"), "write rules in spec.validations of the definition")
	case props.XEmbeddedResource:
		return field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "options are not Kubernetes objects")
	case props.Ref != nil:
		return field.Forbidden(path.Child("$ref"), "write the schema here")
	}
	for name, within := range props.Properties {
		if err := withoutExtensions(&within, path.Child("properties").Key(name)); err != nil {
			return err
		}
	}
	if props.Items != nil && props.Items.Schema != nil {
		if err := withoutExtensions(props.Items.Schema, path.Child("items")); err != nil {
			return err
		}
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		return withoutExtensions(props.AdditionalProperties.Schema, path.Child("additionalProperties"))
	}
	return nil
}

// complete returns options with their defaults, and their errors.
func (s *optionsSchema) complete(raw *v1alpha1.JSONObject, path *field.Path) (map[string]any, field.ErrorList) {
	options := map[string]any{}
	if raw != nil && len(raw.Raw) > 0 {
		// Integers are int64, as in objects of the cluster.
		if err := utiljson.Unmarshal(raw.Raw, &options); err != nil {
			return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an object: "+err.Error())}
		}
		if options == nil {
			options = map[string]any{}
		}
	}
	unknown := pruning.PruneWithOptions(options, s.structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has no option %s; there are %s", strings.Join(unknown, ", "), s.names()))}
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(options, s.structural)
	defaulting.Default(options, s.structural)
	return options, apivalidation.ValidateCustomResource(path, options, s.validator)
}

// names returns the names of the options for a message.
func (s *optionsSchema) names() string {
	var names []string
	for name := range s.props.Properties {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// document lists the options of a schema, including nested options.
func (s *optionsSchema) document() []v1alpha1.ProfileOption {
	var out []v1alpha1.ProfileOption
	documentWithin(s.props, "", &out)
	return out
}

func documentWithin(props *apiextensionsv1.JSONSchemaProps, prefix string, out *[]v1alpha1.ProfileOption) {
	var names []string
	for name := range props.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		one := props.Properties[name]
		option := v1alpha1.ProfileOption{Name: prefix + name, Type: one.Type, Description: one.Description, Allowed: allowed(&one)}
		if one.Default != nil {
			option.Default = string(one.Default.Raw)
		}
		*out = append(*out, option)
		documentWithin(&one, prefix+name+".", out)
	}
}

// allowed describes the values that a schema allows.
func allowed(props *apiextensionsv1.JSONSchemaProps) string {
	var parts []string
	if len(props.Enum) > 0 {
		values := make([]string, len(props.Enum))
		for i, value := range props.Enum {
			values[i] = string(value.Raw)
		}
		parts = append(parts, "one of "+strings.Join(values, ", "))
	}
	if props.Minimum != nil {
		parts = append(parts, fmt.Sprintf("at least %v", *props.Minimum))
	}
	if props.Maximum != nil {
		parts = append(parts, fmt.Sprintf("at most %v", *props.Maximum))
	}
	if props.Pattern != "" {
		parts = append(parts, "matches "+props.Pattern)
	}
	return strings.Join(parts, ", ")
}
