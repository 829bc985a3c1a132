package profile

import (
	"fmt"
	"strings"
)

// Missing says what of a profile's requirements a cluster lacks; nil when nothing.
func Missing(p Profile, facts Facts) error {
	var lacks []string
	for _, requirement := range p.Requires() {
		if _, found := facts.Definitions[requirement.Definition]; !found && !requirement.Optional {
			lacks = append(lacks, fmt.Sprintf("%s (CustomResourceDefinition %s) is not served: install %s",
				requirement.Kind.Kind, requirement.Definition, requirement.Install))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &MissingError{Message: strings.Join(lacks, "; ")}
}
