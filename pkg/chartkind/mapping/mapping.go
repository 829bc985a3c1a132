// Package mapping computes the values of a chart from a custom resource: by paths, by CEL
// expressions, and by fixed overrides. It is pure, and its cost is bounded.
package mapping

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/rollout/probe/expression"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxUnits limits the total cost of all expressions of one custom resource: about 0.1 s (see
	// package expression).
	maxUnits = 1_000_000
	// maxValues limits the computed values, in bytes of JSON.
	maxValues    = 256 << 10
	maxExtension = 52
)

// Mapping is the compiled mapping of one ChartKind. It is safe for concurrent use.
type Mapping struct {
	spec      *chartkind.Spec
	extension *expression.Program
	// programs are the compiled expressions, by the index of their value.
	programs map[int]*expression.Program
}

// New compiles a stored mapping. Limits for new mappings do not apply, so that a stored mapping
// stays valid.
func New(spec *chartkind.Spec) (*Mapping, error) {
	m, errs := compile(spec, false)
	return m, errs.ToAggregate()
}

// Validate returns the errors of a ChartKind, including errors in its expressions.
func Validate(spec, old *chartkind.Spec) field.ErrorList {
	if errs := chartkind.Validate(spec, old); len(errs) > 0 {
		return errs
	}
	_, errs := compile(spec, true)
	return errs
}

func compile(spec *chartkind.Spec, checking bool) (*Mapping, field.ErrorList) {
	m, path := &Mapping{spec: spec, programs: map[int]*expression.Program{}}, field.NewPath("spec")
	var errs field.ErrorList
	names := &expression.Compiler{Checking: checking, JSON: true, Variables: []string{"object"}}
	values := &expression.Compiler{Checking: checking, JSON: true, Variables: []string{"object", "inputs"}}
	program := func(with *expression.Compiler, source string, at *field.Path) *expression.Program {
		if len(source) > chartkind.MaxExpression {
			errs = append(errs, field.TooLong(at, field.OmitValueType{}, chartkind.MaxExpression))
			return nil
		}
		compiled, err := with.Compile(source)
		if err != nil {
			errs = append(errs, field.Invalid(at, source, err.Error()))
		}
		return compiled
	}
	if spec.Extension != "" {
		m.extension = program(names, spec.Extension, path.Child("extension"))
	}
	for i, value := range spec.Values {
		if value.Expression != "" {
			m.programs[i] = program(values, value.Expression, path.Child("values").Index(i).Child("expression"))
		}
	}
	return m, errs
}

// Visible returns the part of a custom resource that expressions and paths can read: no status, and
// of the metadata only the uid and the parts that its author writes.
func Visible(resource *unstructured.Unstructured) map[string]any {
	seen := maps.Clone(resource.Object)
	delete(seen, "status")
	metadata := map[string]any{"name": resource.GetName(), "uid": string(resource.GetUID())}
	if resource.GetNamespace() != "" {
		metadata["namespace"] = resource.GetNamespace()
	}
	for _, name := range []string{"labels", "annotations"} {
		if found, has, _ := unstructured.NestedMap(resource.Object, "metadata", name); has {
			metadata[name] = found
		}
	}
	seen["metadata"] = metadata
	return seen
}

// Extension returns the name of the extension for a custom resource. Without spec.extension, names
// are unique across custom resources and ChartKinds. So a user of one namespace cannot take the
// name that a custom resource of another namespace will need.
func (m *Mapping) Extension(ctx context.Context, resource *unstructured.Unstructured) (string, error) {
	if m.extension == nil {
		kind := m.spec.Resource
		return text.Name(maxExtension, m.FormerExtension(resource), kind.Group, kind.Kind, resource.GetNamespace(), resource.GetName()), nil
	}
	out, err := m.extension.Value(ctx, map[string]any{"object": Visible(resource)}, expression.NewCostBudget(maxUnits))
	if err != nil {
		return "", fmt.Errorf("spec.extension of the ChartKind: %w", err)
	}
	name, isText := out.(string)
	if !isText {
		return "", fmt.Errorf("spec.extension of the ChartKind is %v, must be text", out)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > maxExtension {
		return "", fmt.Errorf("the extension would be %q: it must be lower case letters, digits and hyphens, at most %d; set spec.extension of the ChartKind", name, maxExtension)
	}
	return name, nil
}

// FormerExtension returns the name that an extension had when names had no digest. With
// spec.extension it is empty.
func (m *Mapping) FormerExtension(resource *unstructured.Unstructured) string {
	if m.extension != nil {
		return ""
	}
	parts := []string{strings.ToLower(m.spec.Resource.Kind)}
	if namespace := resource.GetNamespace(); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, resource.GetName()), "-")
}

// Inputs are the resolved inputs of a ChartKind, by name, as JSON values.
type Inputs map[string]any

// Values computes the values of the chart.
func (m *Mapping) Values(ctx context.Context, resource *unstructured.Unstructured, inputs Inputs) (map[string]any, error) {
	object, budget, values := Visible(resource), expression.NewCostBudget(maxUnits), map[string]any{}
	for i, value := range m.spec.Values {
		found, has := any(nil), false
		if program := m.programs[i]; program != nil {
			out, err := program.Value(ctx, map[string]any{"object": object, "inputs": map[string]any(inputs)}, budget)
			if err != nil {
				return nil, fmt.Errorf("value %s, by spec.values[%d].expression of the ChartKind: %w", value.To, i, err)
			}
			found, has = out, out != nil
		} else {
			found, has = At(object, value.From)
		}
		if !has {
			continue
		}
		if err := unstructured.SetNestedField(values, plain(found), strings.Split(value.To, ".")...); err != nil {
			return nil, fmt.Errorf("value %s: %w", value.To, err)
		}
	}
	values = merge(values, m.spec.Overrides)
	content, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encoding the values: %w", err)
	}
	if len(content) > maxValues {
		return nil, fmt.Errorf("the values have %d bytes, and may have at most %d", len(content), maxValues)
	}
	return values, nil
}

// At returns the value at a path of an object; a null counts as absent.
func At(object map[string]any, path string) (any, bool) {
	var at any = object
	for _, name := range strings.Split(path, ".") {
		fields, isMap := at.(map[string]any)
		if !isMap {
			return nil, false
		}
		at = fields[name]
	}
	return at, at != nil
}

func plain(value any) any {
	content, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var out any
	if err := json.Unmarshal(content, &out); err != nil {
		return nil
	}
	return out
}

// merge merges over into values, field by field; over wins.
func merge(values, over map[string]any) map[string]any {
	for name, value := range over {
		fields, isMap := value.(map[string]any)
		below, both := values[name].(map[string]any)
		switch {
		case isMap && both:
			values[name] = merge(below, fields)
		case isMap:
			values[name] = runtime.DeepCopyJSON(plain(fields).(map[string]any))
		default:
			values[name] = plain(value)
		}
	}
	return values
}

// madeOfVersion is raised when Penstock renders other objects from the same chart and values.
const madeOfVersion = 1

// MadeOf holds all inputs of a revision's content.
type MadeOf struct {
	// Chart is the chart's reference with its digest.
	Chart              string
	Release, Namespace string
	Values             map[string]any
	Inputs             Inputs
	GeneratedSecrets   []string
}

// Digest returns a digest that changes only when the content of a revision could change.
func (m MadeOf) Digest() (string, error) {
	content, err := json.Marshal(struct {
		Version int
		MadeOf
	}{madeOfVersion, m})
	if err != nil {
		return "", fmt.Errorf("encoding what a revision is made of: %w", err)
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
