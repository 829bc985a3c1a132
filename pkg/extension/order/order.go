// Package order has the order between ClusterExtensions. An extension names in an annotation the
// extensions, with versions, that must be installed before it. The order only delays what Penstock
// would begin. It installs, chooses and upgrades nothing, and does not stop an installed extension.
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

// Extension has the fields of a ClusterExtension that the order needs.
type Extension struct {
	Name, Target string
	// Installed is true if a version is installed, and Version is that version, empty when unknown.
	Installed bool
	Version   string
	// Available is true if the installed version works.
	Available bool
	// Package is the package of the bundle, empty when the ClusterExtension does not name it.
	Package string
	// Requires is empty when the annotation cannot be read.
	Requires []extension.Requirement
}

// RequiredBy returns the requirements of a ClusterExtension without reading the rest: callers read
// all extensions at each change.
func RequiredBy(object *unstructured.Unstructured) []extension.Requirement {
	value, has := object.GetAnnotations()[extension.RequiresAnnotation]
	if !has {
		return nil
	}
	// Nobody writes one that cannot be read. It is said by the controller if it is there.
	requires, _ := extension.ParseRequires(value)
	return requires
}

// Of reads a ClusterExtension; an extension that is being deleted is not installed.
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
		// The bundle of an image has the name of its package: no catalog names it.
		one.Package = read.Status.Install.Bundle.Name
	}
	if read.Spec.Source.Catalog != nil {
		one.Package = read.Spec.Source.Catalog.PackageName
	}
	return one
}

// Find returns the extension with a name, nil when there is none.
type Find func(name string) *Extension

// Requires returns the requirements of the extension with a name.
type Requires func(name string) []extension.Requirement

// Shown returns whether the reader of a message may know of the extension with a name.
type Shown func(name string) bool

// Unmet returns what must happen before an extension begins, or nothing when it may begin. Of
// extensions that are not shown it says only that they are not as required.
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

// maxLooked bounds the search for a cycle in a pass, so that the passes of a chain of extensions that wait for
// each other cost a constant each. Writes are searched without a bound.
const maxLooked = 100

// Cycle returns the names of extensions that require each other, beginning with name. It returns
// nil when name is in no cycle among the first most extensions that it requires, the nearest first.
// Most is 0 for no bound.
func Cycle(name string, requires []extension.Requirement, of Requires, most int) []string {
	// from has by which extension another one was found.
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

// Breaks returns the installed extensions whose requirements would become unmet when the extension
// gets another version, or is deleted (empty version). It counts extensions that are not shown. It
// is empty when there are none, and when the acknowledgement is of exactly these.
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
	return fmt.Sprintf("%s; to go on without regard to that: kubectl annotate --overwrite clusterextension %s %s=%s", text, of.Name, extension.AcknowledgeDependentsAnnotation, id)
}

// maxShown is the number of dependents that a message names.
const maxShown = 5

// identify names what is acknowledged: a change of one extension that others do not agree with.
func identify(version string, names []string) string {
	slices.Sort(names)
	sum := sha256.Sum256([]byte(version + "\n" + strings.Join(names, "\n")))
	return fmt.Sprintf("%d-%s", len(names), hex.EncodeToString(sum[:5]))
}
