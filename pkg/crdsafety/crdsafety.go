// Package crdsafety checks whether a CustomResourceDefinition can replace the one in the cluster
// without breaking stored objects and their clients. The checks are those of sigs.k8s.io/crdify
// with OLM v1's settings, and one for oneOf. The package is pure: callers pass in the cluster's
// definition with its status.
//
// It has its own walk over the schema, because crdify's walk mixes a property with its alternatives
// (anyOf, oneOf) and so hides changes.
package crdsafety

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/crd/existingfieldremoval"
	"sigs.k8s.io/crdify/pkg/validations/crd/scope"
	"sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval"
	"sigs.k8s.io/crdify/pkg/validations/property"

	"github.com/penstock-project/penstock/pkg/diff/words"
)

// unhandled is the check that fails for every change that no other check handles.
const unhandled = "unhandled"

// maxFindings is the largest number of findings in the text of an error.
const maxFindings = 20

// Finding is an unsafe change.
type Finding struct {
	// Check is the name of the check, one of Checks.
	Check string `json:"check"`
	// Version of the change; empty for the whole definition, and "v1alpha1 -> v1" for a difference
	// between two versions that are served at the same time.
	Version string `json:"version,omitempty"`
	// Property is the path of the field, such as ^.spec.size; [*] means every element.
	Property string `json:"property,omitempty"`
	// Message is the message of OLM v1, which users may search for. Words is the text that the
	// notes of a diff use.
	Message string `json:"message"`
	Words   string `json:"words"`
	// Warning is true if the check was downgraded: the change is reported and not refused.
	Warning bool `json:"warning,omitempty"`
}

// String returns the format of OLM v1: "v1: ^.spec.size: type: type changed …".
func (f Finding) String() string {
	var parts []string
	for _, part := range []string{f.Version, f.Property, f.Check, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Error is the refusal of a definition that must not replace the definition in the cluster.
type Error struct {
	// Name of the definition.
	Name     string
	Findings []Finding
	// Advice is the first action to take; empty if only another version of the definition helps.
	Advice string
}

// Error returns the first findings, and the number of omitted findings.
func (e *Error) Error() string {
	var lines []string
	for _, finding := range e.Findings[:min(len(e.Findings), maxFindings)] {
		lines = append(lines, finding.String())
	}
	if more := len(e.Findings) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	if e.Advice != "" {
		lines = append(lines, e.Advice)
	}
	return fmt.Sprintf("validating upgrade for CRD %q: %s", e.Name, strings.Join(lines, "\n"))
}

// Checker holds the checks with their settings. It is safe for concurrent use.
type Checker struct {
	definition []validations.Comparator[apiextensionsv1.CustomResourceDefinition]
	properties []validations.Comparator[apiextensionsv1.JSONSchemaProps]
	warn       map[string]bool
}

// Checks returns the names of all checks, sorted.
func Checks() []string {
	names := append(newRegistry().Registered(), unhandled)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "description" })
}

// New returns a checker with OLM v1's settings: every check refuses, but descriptions may change
// and enums may grow. The checks in warn only report.
func New(warn []string) (*Checker, error) {
	for _, name := range warn {
		if allowed := Checks(); !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("check %q does not exist: want one of %s", name, strings.Join(allowed, ", "))
		}
	}
	registry := newRegistry()
	all, err := validations.LoadValidationsFromRegistry(registry)
	if err != nil {
		return nil, fmt.Errorf("making the checks of definitions: %w", err)
	}
	all, err = validations.ConfigureValidations(all, registry, config.Config{Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
	}})
	if err != nil {
		return nil, fmt.Errorf("setting the checks of definitions: %w", err)
	}
	checker := &Checker{warn: map[string]bool{}}
	for _, name := range warn {
		checker.warn[name] = true
	}
	// The checks run in the order of their names, because some checks blank the fields that they
	// have compared, and a map has no order.
	names := registry.Registered()
	slices.Sort(names)
	for _, name := range names {
		one := all[name]
		checker.definition = append(checker.definition, validations.ComparatorsForValidations[apiextensionsv1.CustomResourceDefinition](one)...)
		checker.properties = append(checker.properties, validations.ComparatorsForValidations[apiextensionsv1.JSONSchemaProps](one)...)
	}
	return checker, nil
}

// newRegistry returns the checks that OLM v1 uses, and oneOf.
func newRegistry() validations.Registry {
	registry := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		existingfieldremoval.Register, scope.Register, storedversionremoval.Register,
		property.RegisterDefault, property.RegisterEnum, property.RegisterRequired, property.RegisterType, property.RegisterDescription,
		property.RegisterMaximum, property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties,
		property.RegisterMinimum, property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties,
		registerOneOf,
	} {
		register(registry)
	}
	return registry
}

// Compare returns the unsafe changes, including warnings, sorted. live is the definition in the
// cluster; its status.storedVersions matters.
func (c *Checker) Compare(live, next *apiextensionsv1.CustomResourceDefinition) []Finding {
	live, next = withSchemas(live), withSchemas(next)
	var found []Finding
	for _, check := range c.definition {
		for _, finding := range c.findings("", "", check.Compare(live, next)) {
			finding.Words = ofDefinition(finding, live, next)
			found = append(found, finding)
		}
	}
	for _, before := range live.Spec.Versions {
		if after := validations.GetCRDVersionByName(next, before.Name); after != nil {
			found = append(found, c.compareVersions(before.Name, before, *after, false)...)
		}
	}
	found = append(found, c.compareServed(live, next)...)
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Property, b.Property), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// Check returns the warnings, and an error of type *Error if a change must be refused.
func (c *Checker) Check(live, next *apiextensionsv1.CustomResourceDefinition) ([]Finding, error) {
	var warnings, refused []Finding
	for _, finding := range c.Compare(live, next) {
		if finding.Warning {
			warnings = append(warnings, finding)
		} else {
			refused = append(refused, finding)
		}
	}
	if len(refused) == 0 {
		return warnings, nil
	}
	return warnings, &Error{Name: next.Name, Findings: refused, Advice: storedAdvice(refused, live, next)}
}

// storedAdvice returns the steps to remove a stored version, if that is the only refusal.
func storedAdvice(refused []Finding, live, next *apiextensionsv1.CustomResourceDefinition) string {
	if slices.ContainsFunc(refused, func(one Finding) bool { return one.Check != "storedVersionRemoval" }) {
		return ""
	}
	defined := func(version string) bool { return validations.GetCRDVersionByName(next, version) != nil }
	left := slices.DeleteFunc(slices.Clone(live.Status.StoredVersions), func(version string) bool { return !defined(version) })
	if len(left) == 0 {
		// The API server must first store the objects in one of these versions.
		for _, one := range live.Spec.Versions {
			if defined(one.Name) {
				left = append(left, one.Name)
			}
		}
	}
	return words.StoredAdvice(next.Name, left)
}

// AsError returns the findings of an error, or nil.
func AsError(err error) *Error {
	var refused *Error
	errors.As(err, &refused)
	return refused
}

func (c *Checker) findings(version, path string, result validations.ComparisonResult) []Finding {
	var out []Finding
	for _, message := range result.Errors {
		out = append(out, Finding{Check: result.Name, Version: version, Property: path, Message: message, Warning: c.warn[result.Name]})
	}
	return out
}
