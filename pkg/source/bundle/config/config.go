// Package config parses a user's configuration of a bundle's operator: the watched namespace, and
// changes of its Deployments. The schema depends on the install modes of the bundle and on the
// install namespace.
package config

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	kjson "sigs.k8s.io/json"
)

// InstallModes define which namespaces an operator can watch.
type InstallModes struct {
	// AllNamespaces allows to watch the whole cluster, SingleNamespace a namespace other than the
	// operator's, and OwnNamespace the operator's namespace.
	AllNamespaces, SingleNamespace, OwnNamespace bool
}

// Config is a valid configuration.
type Config struct {
	// WatchNamespace is the watched namespace; empty for all.
	WatchNamespace string
	// Deployment has the changes of each Deployment, as decoded JSON. An absent key changes
	// nothing.
	Deployment map[string]any
}

// Parse parses a JSON object by the schema of a bundle with these install modes. Empty data
// configures nothing. Errors in the configuration are an *Errors.
func Parse(data []byte, modes InstallModes, installNamespace string) (Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	if err := validate(data, modes, installNamespace); err != nil {
		return Config{}, err
	}
	var read struct {
		WatchNamespace   string         `json:"watchNamespace"`
		DeploymentConfig map[string]any `json:"deploymentConfig"`
	}
	twice, err := kjson.UnmarshalStrict(data, &read, kjson.DisallowDuplicateFields)
	if err = errors.Join(append(twice, err)...); err != nil {
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return Config{WatchNamespace: read.WatchNamespace, Deployment: read.DeploymentConfig}, nil
}

func validate(data []byte, modes InstallModes, installNamespace string) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("configuration is not valid JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	// The generated schema refers to no other schema.
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	const name = "config.json"
	if err := compiler.AddResource(name, schemaOf(modes, installNamespace, value)); err != nil {
		return fmt.Errorf("reading the schema of the configuration: %w", err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("compiling the schema of the configuration: %w", err)
	}
	err = schema.Validate(value)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		found := newErrors(invalid)
		found.Modes = modes
		return found
	}
	return err
}
