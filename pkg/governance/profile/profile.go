// Package profile is the interface between plans and the components that they configure. A profile
// has a package with one file. It declares its requirements and, given the facts of a cluster,
// returns the desired objects. It uses no client.
package profile

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Profile configures several components for one purpose.
type Profile interface {
	Name() v1alpha1.ProfileName
	// Description returns the purpose in one sentence.
	Description() string
	// Requires returns the definitions that the profile reads.
	Requires() []Requirement
	// Items returns the desired targets in the order of execution. Every relevant field is set,
	// even to its default. A *MissingError names a requirement that the cluster lacks. Any other
	// error means that no plan can be computed.
	Items(facts Facts, options *v1alpha1.PlanOptions) ([]Item, error)
}

// Waiter is a profile that computes the waits of an item during the execution, from the executed
// plan. The profile's present items do not count.
type Waiter interface {
	// Waits returns the conditions that an item waits for, with the present facts.
	Waits(item string, facts Facts, options *v1alpha1.PlanOptions) ([]Wait, error)
}

// Requirement is a CustomResourceDefinition that a profile reads.
type Requirement struct {
	// Definition is its name, such as kubedeschedulers.operator.openshift.io.
	Definition string
	// Kind is the defined kind.
	Kind schema.GroupKind
	// Install names the software that provides the definition, in words.
	Install string
	// Optional requirements may be missing.
	Optional bool
	// Objects is true if Facts must have the objects of the kind.
	Objects bool
}

// Item is one desired target.
type Item struct {
	Name string
	// Object is a complete manifest. Readers of plans and profiles see it, except items of lists
	// that its target has already. It must have no other value of a live object.
	Object map[string]any
	Impact v1alpha1.ImpactSeverity
	// Reason of the impact.
	Reason string
	Blast  *v1alpha1.BlastRadius
	// Notes are facts for a reviewer. All readers of plans and profiles see them, so they must not
	// quote a value of a live object.
	Notes []string
	// Waits are conditions that the target must meet before the next item begins, in addition to
	// the conditions of its kind (see package wait).
	Waits []Wait
}

// Wait is a condition to wait for, in CEL.
type Wait struct {
	// Expression over self, the live target. It is true if the target is healthy.
	Expression string
	// Message describes what the plan waits for.
	Message string
	// Judge replaces the expression, if set. It reports whether the target is healthy, with a
	// message about the wait. live is nil while the target is not observed.
	Judge func(live map[string]any) (holds bool, message string, err error)
}

// Facts are the known objects and definitions of a cluster.
type Facts struct {
	// Definitions by name. Definitions that are missing or serve no version are left out.
	Definitions map[string]Definition
	// Objects by kind, sorted by name.
	Objects map[schema.GroupKind][]*unstructured.Unstructured
}

// Definition is a CustomResourceDefinition that is served.
type Definition struct {
	// Versions are the served versions, the preferred version first.
	Versions []Version
	// Generation of the definition. It changes when the allowed fields change.
	Generation int64
}

// Version is one served version.
type Version struct {
	Name string
	// Schema of objects (openAPIV3Schema).
	Schema map[string]any
}

// MissingError names a requirement that the cluster lacks.
type MissingError struct {
	Message string
}

func (e *MissingError) Error() string { return e.Message }

// DefinitionOf reads a CustomResourceDefinition. ok is true if it is established and serves a
// version. Versions are in the API server's order of preference: stable, beta, alpha.
func DefinitionOf(crd *unstructured.Unstructured) (Definition, bool) {
	var definition Definition
	if crd == nil || crd.GetDeletionTimestamp() != nil || !established(crd) {
		return definition, false
	}
	definition.Generation = crd.GetGeneration()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); !served || name == "" {
			continue
		}
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		definition.Versions = append(definition.Versions, Version{Name: name, Schema: schema})
	}
	slices.SortStableFunc(definition.Versions, func(a, b Version) int { return compareVersions(a.Name, b.Name) })
	return definition, len(definition.Versions) > 0
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == "Established" {
			return condition["status"] == "True"
		}
	}
	return false
}

// Preferred returns the version to use.
func (d Definition) Preferred() Version {
	if len(d.Versions) == 0 {
		return Version{}
	}
	return d.Versions[0]
}

// field returns the schema of a field.
func (v Version) field(path ...string) (map[string]any, bool) {
	here := v.Schema
	for _, name := range path {
		if name == "[]" {
			next, ok := here["items"].(map[string]any)
			if !ok {
				return nil, false
			}
			here = next
			continue
		}
		properties, _ := here["properties"].(map[string]any)
		next, ok := properties[name].(map[string]any)
		if !ok {
			return nil, false
		}
		here = next
	}
	return here, here != nil
}

// Has reports whether a field exists; "[]" in a path means the items of a list.
func (v Version) Has(path ...string) bool {
	_, ok := v.field(path...)
	return ok
}

// Enum returns the allowed values of a field. It is empty if every value is allowed, or if the
// field does not exist.
func (v Version) Enum(path ...string) []string {
	found, _ := v.field(path...)
	var values []string
	items, _ := found["enum"].([]any)
	for _, item := range items {
		if value, ok := item.(string); ok {
			values = append(values, value)
		}
	}
	return values
}
