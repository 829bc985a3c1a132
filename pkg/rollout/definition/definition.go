// Package definition validates custom resources against a CustomResourceDefinition that is not in
// the cluster yet, with the code of the API server. So a revision that contains both is checked
// before any of its objects is written.
package definition

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/cel"
)

// Definition is a CustomResourceDefinition. Several goroutines may use it.
type Definition struct {
	crd apiextensionsv1.CustomResourceDefinition

	mu sync.Mutex
	// judges by version, compiled on first use.
	judges map[string]*judge
}

// judge validates objects against one version of a definition.
type judge struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *structuralcel.Validator
	status     bool
}

// Parse parses the manifest of a CustomResourceDefinition of apiextensions.k8s.io/v1.
func Parse(manifest []byte) (*Definition, error) {
	d := &Definition{judges: map[string]*judge{}}
	if err := utiljson.Unmarshal(manifest, &d.crd); err != nil {
		return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&d.crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.crd.Spec)
	return d, nil
}

// Kind returns the defined kind.
func (d *Definition) Kind() runtimeschema.GroupKind {
	return runtimeschema.GroupKind{Group: d.crd.Spec.Group, Kind: d.crd.Spec.Names.Kind}
}

// Validate returns the errors that an API server with this definition would report for an object.
// For an existing object, it checks only the names of fields, because existing invalid values may
// stay (KEP-4008). It does not change the object. An error means that the definition itself is
// invalid.
func (d *Definition) Validate(ctx context.Context, version string, object map[string]any, exists bool) (field.ErrorList, error) {
	judge, err := d.judge(version)
	if err != nil {
		return nil, err
	}
	if judge == nil {
		return field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), version, d.served())}, nil
	}
	object = runtime.DeepCopyJSON(object)
	if judge.status {
		delete(object, "status") // the server ignores it
	}
	if findings := append(d.scope(object), judge.unknown(object)...); len(findings) > 0 || exists {
		return findings, nil
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, judge.structural)
	defaulting.Default(object, judge.structural)
	findings := validation.ValidateCustomResource(nil, object, judge.values)
	findings = append(findings, listtype.ValidateListSetsAndMaps(nil, judge.structural, object)...)
	if len(findings) == 0 && judge.rules != nil {
		broken, _ := judge.rules.Validate(ctx, nil, judge.structural, object, nil, cel.RuntimeCELCostBudget)
		findings = append(findings, broken...)
	}
	return findings, nil
}

// unknown returns an error for each field that the schema does not declare. Server-side apply
// refuses such fields and does not prune them.
func (j *judge) unknown(object map[string]any) field.ErrorList {
	var findings field.ErrorList
	paths := pruning.PruneWithOptions(object, j.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range paths {
		findings = append(findings, field.Forbidden(field.NewPath(path), "is not declared in the schema"))
	}
	return findings
}

// scope checks that the object has a namespace exactly if the kind is namespaced.
func (d *Definition) scope(object map[string]any) field.ErrorList {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	path := field.NewPath("metadata", "namespace")
	switch namespaced := d.crd.Spec.Scope == apiextensionsv1.NamespaceScoped; {
	case namespaced && namespace == "":
		return field.ErrorList{field.Required(path, "the kind is namespaced")}
	case !namespaced && namespace != "":
		return field.ErrorList{field.Forbidden(path, "the kind is cluster-scoped")}
	}
	return nil
}

func (d *Definition) served() []string {
	var names []string
	for _, version := range d.crd.Spec.Versions {
		if version.Served {
			names = append(names, version.Name)
		}
	}
	return names
}

// judge compiles a version once. It returns nil for a version that is not served.
func (d *Definition) judge(name string) (*judge, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.judges[name]; ok {
		return known, nil
	}
	for i := range d.crd.Spec.Versions {
		version := &d.crd.Spec.Versions[i]
		if version.Name != name || !version.Served {
			continue
		}
		compiled, err := compile(version)
		if err != nil {
			return nil, fmt.Errorf("compiling version %s of %s: %w", name, d.crd.Name, err)
		}
		d.judges[name] = compiled
		return compiled, nil
	}
	return nil, nil
}

func compile(version *apiextensionsv1.CustomResourceDefinitionVersion) (*judge, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("it has no schema")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	if problems := schema.ValidateStructural(nil, structural); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	values, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &judge{
		structural: structural,
		values:     values,
		rules:      structuralcel.NewValidator(structural, true, cel.PerCallLimit),
		status:     version.Subresources != nil && version.Subresources.Status != nil,
	}, nil
}

// Is reports whether apiVersion and kind belong to a CustomResourceDefinition.
func Is(apiVersion, kind string) bool {
	group, version, _ := strings.Cut(apiVersion, "/")
	return group == apiextensions.GroupName && version == "v1" && kind == "CustomResourceDefinition"
}
