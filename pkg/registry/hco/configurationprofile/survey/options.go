package survey

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	generatedopenapi "github.com/penstock-project/penstock/pkg/generated/openapi"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// optionsIn returns the options of a profile. A user-defined profile has them in its definition, a
// built-in profile in its API type.
func optionsIn(p profile.Profile) []v1alpha1.ProfileOption {
	if own, isOwn := p.(*cel.Profile); isOwn {
		return own.Documented()
	}
	return ofType(string(p.Name()))
}

// ofType reads the options of a profile from its schema, which kubectl explain shows too.
func ofType(name string) []v1alpha1.ProfileOption {
	definitions := generatedopenapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })
	i := slices.IndexFunc(keys(definitions), func(model string) bool {
		return strings.HasSuffix(model, "hco.v1alpha1."+name+"Options")
	})
	if i < 0 {
		return nil
	}
	properties := definitions[keys(definitions)[i]].Schema.Properties
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	options := make([]v1alpha1.ProfileOption, 0, len(names))
	for _, name := range names {
		options = append(options, option(name, properties[name]))
	}
	return options
}

func keys(definitions map[string]common.OpenAPIDefinition) []string {
	models := make([]string, 0, len(definitions))
	for model := range definitions {
		models = append(models, model)
	}
	slices.Sort(models)
	return models
}

// option describes one option. Its default is only in the description: the server does not set it,
// so plans follow a changed default.
func option(name string, schema spec.Schema) v1alpha1.ProfileOption {
	out := v1alpha1.ProfileOption{Name: name, Description: strings.Join(strings.Fields(schema.Description), " ")}
	if len(schema.Type) > 0 {
		out.Type = schema.Type[0]
	}
	if found := regexp.MustCompile(`\bDefault: (\S+?)\.(?:\s|$)`).FindStringSubmatch(out.Description); found != nil {
		out.Default = found[1]
		if out.Type == "string" {
			out.Default = `"` + found[1] + `"`
		}
	}
	values := make([]string, 0, len(schema.Enum))
	for _, value := range schema.Enum {
		if text, isText := value.(string); isText {
			values = append(values, `"`+text+`"`)
		}
	}
	if len(values) > 0 {
		slices.Sort(values)
		out.Allowed = "one of " + strings.Join(values, ", ")
	}
	return out
}
