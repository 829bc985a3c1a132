package profile

import (
	"fmt"
	"slices"
	"strings"
)

// Missing returns an error with the required definitions that a cluster lacks; nil for none.
func Missing(p Profile, facts Facts) error {
	var lacks []string
	for _, requirement := range p.Requires() {
		if !requirement.Optional {
			lacks = append(lacks, requirement.lacks(facts)...)
		}
	}
	return missing(lacks)
}

// Served returns an error with the given definitions that a cluster lacks; nil for none. It is for
// optional requirements that the options of a plan need.
func Served(p Profile, facts Facts, definitions ...string) error {
	var lacks []string
	for _, requirement := range p.Requires() {
		if slices.Contains(definitions, requirement.Definition) {
			lacks = append(lacks, requirement.lacks(facts)...)
		}
	}
	return missing(lacks)
}

func (r Requirement) lacks(facts Facts) []string {
	if _, found := facts.Definitions[r.Definition]; found {
		return nil
	}
	return []string{fmt.Sprintf("%s (CustomResourceDefinition %s) is not served: install %s", r.Kind.Kind, r.Definition, r.Install)}
}

func missing(lacks []string) error {
	if len(lacks) == 0 {
		return nil
	}
	return &MissingError{Message: strings.Join(lacks, "; ")}
}
