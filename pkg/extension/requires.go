package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxRequirements limits the requirements of an extension.
const MaxRequirements = 32

// Requirement is one required extension.
type Requirement struct {
	// Name is the name of the ClusterExtension.
	Name string
	// Range is the range of allowed versions, in the grammar of spec.source.catalog.version; empty
	// for any version.
	Range string
}

// String returns the requirement as users write it.
func (r Requirement) String() string { return r.Name + r.Range }

// ParseRequires parses RequiresAnnotation: names of ClusterExtensions, each with an optional range,
// separated by commas. The conditions of a range are separated by spaces, as in "cert-manager>=1.15
// <2, prometheus".
func ParseRequires(value string) ([]Requirement, error) {
	var all []Requirement
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		at := strings.IndexAny(part, "=<>!~^ ")
		if at < 0 {
			at = len(part)
		}
		one := Requirement{part[:at], strings.TrimSpace(part[at:])}
		if problems := validation.IsDNS1123Subdomain(one.Name); len(problems) > 0 {
			return nil, fmt.Errorf("%q must begin with the name of a ClusterExtension, such as %s: %s", part, requiresExample, strings.Join(problems, "; "))
		}
		if one.Range != "" {
			if _, err := semver.NewConstraint(one.Range); err != nil {
				return nil, fmt.Errorf("%q has no range of versions behind the name, such as %s: %w", part, requiresExample, err)
			}
		}
		if slices.ContainsFunc(all, func(other Requirement) bool { return other.Name == one.Name }) {
			return nil, fmt.Errorf("%s is there twice: write one range, such as %s", one.Name, requiresExample)
		}
		all = append(all, one)
	}
	if len(all) > MaxRequirements {
		return nil, fmt.Errorf("it names %d extensions, and may name at most %d", len(all), MaxRequirements)
	}
	return all, nil
}

const requiresExample = `"cert-manager>=1.15 <2, prometheus"`
