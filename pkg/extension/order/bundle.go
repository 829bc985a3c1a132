package order

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/penstock-project/penstock/pkg/source"
)

// Cluster has the facts of a cluster against which a bundle's requirements are checked.
type Cluster struct {
	// All are the existing ClusterExtensions. Shown reports which of them a message may name.
	All   []Extension
	Shown Shown
	// Serves reports whether the cluster serves a kind, such as cert-manager.io/v1/Certificate.
	Serves func(kind string) (bool, error)
	// Providers returns the packages of the catalogs that meet a requirement.
	Providers func(source.Requirement) []string
}

// Lacks returns the unmet requirements of a bundle in its cluster, each with the command that
// installs a fitting package; empty if all are met. A ClusterExtension must have installed a
// required package, and the cluster must serve a required kind. Combined requirements are not
// evaluated. Kinds is true if a kind is missing: no event reports when the cluster serves it.
func (c Cluster) Lacks(of Extension, requires []source.Requirement) (lacks string, kinds bool, err error) {
	var all []string
	for _, one := range requires {
		why := ""
		switch {
		case one.Package != "":
			why = c.lacksPackage(of, one)
		case one.Constraint != "":
			why = ", which is not evaluated"
		default:
			served, failed := c.Serves(one.Kind.GroupVersion().String() + "/" + one.Kind.Kind)
			if failed != nil {
				return "", false, failed
			}
			if !served {
				why, kinds = ", which the cluster does not serve"+c.installed(one), true
			}
		}
		if why != "" {
			all = append(all, one.String()+why)
		}
	}
	return strings.Join(all, "; "), kinds, nil
}

// lacksPackage returns the reason why a required package is missing. For an extension that the user
// cannot see, the text is the same as for a missing extension.
func (c Cluster) lacksPackage(of Extension, required source.Requirement) string {
	why := ""
	for _, other := range c.All {
		if !other.Installed || other.Package != required.Package || other.Target != of.Target || other.Name == of.Name {
			continue
		}
		fits := fits(other.Version, required.VersionRange)
		if fits && other.Available {
			return ""
		}
		switch {
		case !c.Shown(other.Name):
		case fits:
			why = fmt.Sprintf(", and ClusterExtension %s, which has it, is not available now", other.Name)
		default:
			why = fmt.Sprintf(", and ClusterExtension %s has %s", other.Name, other.Version)
		}
	}
	if why != "" {
		return why
	}
	return ", which no ClusterExtension that its author may get has installed" + c.installed(required)
}

// fits reports whether a version is in a bundle's range. The grammar is OLM's, which differs from
// the grammar of ClusterExtensions.
func fits(version, wanted string) bool {
	if wanted == "" {
		return true
	}
	has, err := semver.Parse(version)
	if err != nil {
		return false
	}
	allowed, err := semver.ParseRange(wanted)
	return err == nil && allowed(has)
}

func (c Cluster) installed(required source.Requirement) string {
	names := c.Providers(required)
	if len(names) == 0 {
		return ", and no package of the catalogs has it"
	}
	command := "kubectl penstock install " + names[0] + " -n NAMESPACE"
	if required.VersionRange != "" {
		command += " --version '" + strings.ReplaceAll(required.VersionRange, "'", "") + "'"
	}
	if others := slices.Clone(names[1:]); len(others) > 0 {
		command += ", or one of " + strings.Join(others, ", ")
	}
	return ": " + command
}
