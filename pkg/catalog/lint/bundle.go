package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// checkBundles checks that each bundle is in a channel, and has exactly one version, which no other
// bundle has.
func (l *linter) checkBundles(name string, own *fbc.Config) {
	inChannel := map[string]bool{}
	for i := range own.Channels {
		for _, entry := range own.Channels[i].Entries {
			inChannel[entry.Name] = true
		}
	}
	seen := map[string]bool{}
	byVersion := map[string][]string{}
	unsupported := map[string]string{}
	for i := range own.Bundles {
		bundle := &own.Bundles[i]
		say := func(severity Severity, format string, args ...any) {
			l.add(Finding{Severity: severity, Package: name, Bundle: bundle.Name, Message: fmt.Sprintf(format, args...)})
		}
		if seen[bundle.Name] {
			say(Error, "the package has two bundles of this name")
			continue
		}
		seen[bundle.Name] = true
		if bundle.Name == "" {
			say(Error, "a bundle has no name")
		}
		if !inChannel[bundle.Name] {
			say(Error, "it is in no channel")
		}
		if version := checkVersion(bundle, say); version != "" {
			byVersion[version] = append(byVersion[version], bundle.Name)
		}
		checkImages(bundle, say)
		if reason := graph.Unsupported(bundle); reason != "" {
			unsupported[bundle.Name] = reason
		}
	}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		if names := byVersion[version]; len(names) > 1 {
			slices.Sort(names)
			l.add(Finding{Severity: Error, Package: name, Message: fmt.Sprintf("several bundles have version %s: %s", version, strings.Join(names, ", "))})
		}
	}
	if len(unsupported) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(unsupported)))
		l.add(Finding{Severity: Warning, Package: name, Message: fmt.Sprintf("OLM v1 cannot install %d of %d bundles, for instance %s: it %s", len(unsupported), len(own.Bundles), first, unsupported[first])})
	}
}

// checkVersion returns the version; empty if there is none.
func checkVersion(bundle *fbc.Bundle, say func(Severity, string, ...any)) string {
	count := 0
	for _, property := range bundle.Properties {
		if property.Type == "" {
			say(Error, "a property has no type")
		}
		if property.Type != fbc.PropertyPackage {
			continue
		}
		count++
		var value struct{ PackageName string }
		if err := json.Unmarshal(property.Value, &value); err != nil || value.PackageName != bundle.Package {
			say(Error, "property %s is of package %q, and the bundle of %q", fbc.PropertyPackage, value.PackageName, bundle.Package)
		}
	}
	if count != 1 {
		say(Error, "it has %d properties %s, want 1", count, fbc.PropertyPackage)
		return ""
	}
	version, err := bundle.Version()
	if err != nil {
		say(Error, "its version cannot be read: %v", err)
		return ""
	}
	return version.String()
}

func checkImages(bundle *fbc.Bundle, say func(Severity, string, ...any)) {
	carries := slices.ContainsFunc(bundle.Properties, func(p fbc.Property) bool { return p.Type == fbc.PropertyBundleObject })
	if bundle.Image == "" && !carries {
		say(Error, "it has no image")
	}
	if problem := imageProblem(bundle.Image); bundle.Image != "" && problem != "" {
		say(Error, "image %s", problem)
	}
	for _, related := range bundle.RelatedImages {
		if problem := imageProblem(related.Image); problem != "" {
			say(Error, "related image %q: %s", related.Name, problem)
		}
	}
}
