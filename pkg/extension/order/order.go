// Package order implements the order between ClusterExtensions. An annotation names the extensions,
// with versions, that must be installed first. The order only delays the start of rollouts. It
// installs, chooses and upgrades nothing, and does not stop an installed extension.
package order

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// Extension holds the fields of a ClusterExtension that the order needs.
type Extension struct {
	Name, Target string
	// Installed is true if a version is installed. Version is that version; empty if unknown.
	Installed bool
	Version   string
	// Available is true if the installed version is available.
	Available bool
	// Package is the package of the bundle; empty if the ClusterExtension does not name it.
	Package string
	// Requires is empty if the annotation cannot be parsed.
	Requires []extension.Requirement
}

// RequiredBy returns only the requirements of a ClusterExtension. It is cheap, because callers read
// all extensions at each change.
func RequiredBy(object *unstructured.Unstructured) []extension.Requirement {
	value, has := object.GetAnnotations()[extension.RequiresAnnotation]
	if !has {
		return nil
	}
	// Admission refuses an invalid annotation, and the controller reports it if it exists.
	requires, _ := extension.ParseRequires(value)
	return requires
}

// Of converts a ClusterExtension. An extension that is being deleted does not count as installed.
func Of(object *unstructured.Unstructured) Extension {
	one := Extension{Name: object.GetName(), Target: object.GetAnnotations()[extension.TargetAnnotation]}
	one.Requires = RequiredBy(object)
	read, err := extension.From(object)
	if err != nil || read.DeletionTimestamp != nil {
		return one
	}
	one.Installed = meta.IsStatusConditionTrue(read.Status.Conditions, status.Installed)
	one.Available = meta.IsStatusConditionTrue(read.Status.Conditions, status.Available)
	if read.Status.Install != nil {
		one.Version = read.Status.Install.Bundle.Version
		// Without a catalog, the bundle's name is used as the package.
		one.Package = read.Status.Install.Bundle.Name
	}
	if read.Spec.Source.Catalog != nil {
		one.Package = read.Spec.Source.Catalog.PackageName
	}
	return one
}

// Find returns an extension by name; nil if it does not exist.
type Find func(name string) *Extension

// Requires returns the requirements of an extension, by name.
type Requires func(name string) []extension.Requirement

// Shown reports whether the reader of a message may see the extension.
type Shown func(name string) bool

// Unmet returns the requirements that delay the start of an extension; empty if it can start. For a
// hidden extension, it only returns that the requirement is not met.
func Unmet(of Extension, find Find, requires Requires, shown Shown) string {
	var missing []string
	hidden := false
	for _, one := range of.Requires {
		why := unmet(of, one, find(one.Name))
		if why != "" && !shown(one.Name) {
			hidden = true
			why = fmt.Sprintf("%s, which is not met; the author cannot get ClusterExtension %s, so nothing more is said", one, one.Name)
		}
		if why != "" {
			missing = append(missing, why)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	said := "it requires " + strings.Join(missing, "; ")
	if cycle := Cycle(of.Name, of.Requires, requires, maxLooked); cycle != nil && !hidden && !slices.ContainsFunc(cycle[1:], func(name string) bool { return !shown(name) }) {
		said += fmt.Sprintf("; %s require each other, so that none begins: change annotation %s of one", strings.Join(cycle, ", "), extension.RequiresAnnotation)
	}
	return said
}

func unmet(of Extension, one extension.Requirement, found *Extension) string {
	switch {
	case found == nil:
		return fmt.Sprintf("%s, and there is no ClusterExtension %s: create it", one, one.Name)
	case found.Target != of.Target:
		return fmt.Sprintf("%s, and ClusterExtension %s is rolled out into another cluster", one, one.Name)
	case !found.Installed:
		return fmt.Sprintf("%s, and ClusterExtension %s is not installed yet", one, one.Name)
	case one.Range != "" && found.Version == "":
		return fmt.Sprintf("%s, and the version of ClusterExtension %s is not known", one, one.Name)
	case !resolve.InRange(found.Version, one.Range):
		return fmt.Sprintf("%s, and ClusterExtension %s has %s", one, one.Name, found.Version)
	case !found.Available:
		return fmt.Sprintf("%s, and ClusterExtension %s is not available now", one, one.Name)
	}
	return ""
}

// maxLooked limits the search for a cycle in a pass. So each pass in a long chain of waiting
// extensions has a constant cost. The check of a write has no limit.
const maxLooked = 100

// Cycle returns the names of extensions that require each other, beginning with name. It searches
// breadth-first, and returns nil if there is no cycle within the first most extensions. With most 0
// there is no limit.
func Cycle(name string, requires []extension.Requirement, of Requires, most int) []string {
	// from maps each found extension to the extension that requires it.
	from := map[string]string{name: ""}
	found := []string{name}
	for i := 0; i < len(found) && (most == 0 || i <= most); i++ {
		at := found[i]
		if i > 0 {
			requires = of(at)
		}
		for _, next := range requires {
			if next.Name == name {
				var cycle []string
				for ; at != ""; at = from[at] {
					cycle = append(cycle, at)
				}
				slices.Reverse(cycle)
				return cycle
			}
			if _, seen := from[next.Name]; !seen {
				from[next.Name] = at
				found = append(found, next.Name)
			}
		}
	}
	return nil
}

// Breaks describes the installed extensions whose requirements would be unmet after the extension
// changes to version, or is deleted (version is empty). It counts hidden extensions, too. The text
// is empty if no extension has unmet requirements, or if the acknowledgement matches exactly these
// extensions.
func Breaks(of Extension, version string, all []Extension, acknowledged string, shown Shown) string {
	var names, said []string
	for _, other := range all {
		if !other.Installed || other.Target != of.Target || other.Name == of.Name {
			continue
		}
		for _, one := range other.Requires {
			if one.Name != of.Name || version != "" && resolve.InRange(version, one.Range) {
				continue
			}
			names = append(names, other.Name)
			if len(said) < maxShown && shown(other.Name) {
				said = append(said, other.Name+" (requires "+one.String()+")")
			}
		}
	}
	id := identify(version, names)
	if len(names) == 0 || acknowledged == id {
		return ""
	}
	asks := "require it"
	if version != "" {
		asks = "do not allow " + version
	}
	text := fmt.Sprintf("%d installed extensions %s", len(names), asks)
	if len(said) > 0 {
		slices.Sort(said)
		text += ", such as " + strings.Join(said, ", ")
	}
	return fmt.Sprintf("%s; to continue without that: kubectl annotate --overwrite clusterextension %s %s=%s", text, of.Name, extension.AcknowledgeDependentsAnnotation, id)
}

const maxShown = 5

// identify returns the value that acknowledges this version and these dependents.
func identify(version string, names []string) string {
	slices.Sort(names)
	sum := sha256.Sum256([]byte(version + "\n" + strings.Join(names, "\n")))
	return fmt.Sprintf("%d-%s", len(names), hex.EncodeToString(sum[:5]))
}
