package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// validate validates values against the schemas of a chart and its subcharts. Helm's own function
// fetches referenced schemas; here a schema that needs the network is refused.
func validate(chart *chartv2.Chart, values map[string]any) error {
	var errs []error
	if len(chart.Schema) > 0 {
		if err := validateOne(chart.Schema, values); err != nil {
			errs = append(errs, fmt.Errorf("values of chart %s do not match its values.schema.json: %w", chart.Name(), err))
		}
	}
	for _, inner := range chart.Dependencies() {
		of, ok := values[inner.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := validate(inner, of); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func validateOne(schema []byte, values map[string]any) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	const name = "file:///values.schema.json"
	if err := compiler.AddResource(name, document); err != nil {
		return err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("compiling it, without remote references: %w", err)
	}
	// The values have Go types of several decoders, and the validator accepts the types of only one
	// decoder.
	encoded, err := json.Marshal(values)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}
