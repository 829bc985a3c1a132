// Package lint finds errors in a catalog: violations of opm's rules, which OLM v1 does not check
// when it reads a catalog, and content that OLM v1 cannot use. It is pure.
package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// Severity defines whether opm refuses the catalog because of a finding.
type Severity string

// Severities: opm refuses a catalog with an error. After a warning, OLM v1 cannot use some content
// as its author intended.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one defect of a catalog.
type Finding struct {
	Severity Severity `json:"severity"`
	Package  string   `json:"package,omitempty"`
	Channel  string   `json:"channel,omitempty"`
	Bundle   string   `json:"bundle,omitempty"`
	Message  string   `json:"message"`
}

// String returns text such as "error: package p, channel c, bundle b: message".
func (f Finding) String() string {
	var where []string
	for _, part := range []struct{ noun, name string }{{"package", f.Package}, {"channel", f.Channel}, {"bundle", f.Bundle}} {
		if part.name != "" {
			where = append(where, part.noun+" "+part.name)
		}
	}
	if len(where) == 0 {
		return fmt.Sprintf("%s: %s", f.Severity, f.Message)
	}
	return fmt.Sprintf("%s: %s: %s", f.Severity, strings.Join(where, ", "), f.Message)
}

// Check returns all findings, sorted by package, channel and bundle. It is for a complete catalog:
// it also checks documents with the same name.
func Check(catalog *fbc.Config) []Finding {
	l := &linter{catalog: catalog}
	for _, other := range catalog.Others {
		if other.Schema == "" {
			l.add(Finding{Severity: Error, Package: other.Package, Message: fmt.Sprintf("the document in line %d of %s has no schema", other.Line, other.File)})
		}
	}
	packages := l.split()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		l.checkPackage(name, packages[name])
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Bundle, b.Bundle))
	})
	return l.findings
}

type linter struct {
	catalog  *fbc.Config
	findings []Finding
}

func (l *linter) add(finding Finding) { l.findings = append(l.findings, finding) }

// split splits the catalog by package, and keeps documents with the same name.
func (l *linter) split() map[string]*fbc.Config {
	out := map[string]*fbc.Config{}
	of := func(name string) *fbc.Config {
		if out[name] == nil {
			out[name] = &fbc.Config{}
		}
		return out[name]
	}
	for _, one := range l.catalog.Packages {
		of(one.Name).Packages = append(of(one.Name).Packages, one)
	}
	for _, one := range l.catalog.Channels {
		of(one.Package).Channels = append(of(one.Package).Channels, one)
	}
	for _, one := range l.catalog.Bundles {
		of(one.Package).Bundles = append(of(one.Package).Bundles, one)
	}
	for _, one := range l.catalog.Deprecations {
		of(one.Package).Deprecations = append(of(one.Package).Deprecations, one)
	}
	return out
}

func (l *linter) checkPackage(name string, own *fbc.Config) {
	say := func(severity Severity, format string, args ...any) {
		l.add(Finding{Severity: severity, Package: name, Message: fmt.Sprintf(format, args...)})
	}
	switch len(own.Packages) {
	case 0:
		say(Error, "there are documents of the package, and no olm.package named %q", name)
	case 1:
		l.checkNames(own, say)
	default:
		say(Error, "there are %d documents olm.package of this name", len(own.Packages))
	}
	l.checkChannels(name, own)
	l.checkBundles(name, own)
	l.checkDeprecations(own, say)
}

func (l *linter) checkNames(own *fbc.Config, say func(Severity, string, ...any)) {
	one := own.Packages[0]
	if problems := validation.IsDNS1123Label(one.Name); len(problems) > 0 {
		say(Error, "the name %q is not allowed: %s", one.Name, strings.Join(problems, "; "))
	}
	switch {
	case len(own.Channels) == 0:
		say(Error, "the package has no channels")
	case one.DefaultChannel == "":
		say(Error, "the package has no default channel")
	case !slices.ContainsFunc(own.Channels, func(c fbc.Channel) bool { return c.Name == one.DefaultChannel }):
		say(Error, "the default channel %q does not exist", one.DefaultChannel)
	}
	if one.Icon != nil {
		if problem := iconProblem(one.Icon); problem != "" {
			say(Warning, "the icon %s", problem) // older versions of opm checked it
		}
	}
}

// iconProblem compares the content of an icon with its declared type.
func iconProblem(icon *fbc.Icon) string {
	switch {
	case len(icon.Data) == 0:
		return "has no data"
	case icon.MediaType == "":
		return "has no mediatype"
	}
	found := http.DetectContentType(icon.Data)
	if bytes.Contains(icon.Data[:min(len(icon.Data), 4096)], []byte("<svg")) {
		found = "image/svg+xml"
	}
	if !strings.HasPrefix(found, "image/") {
		return "is no picture"
	}
	if found != icon.MediaType {
		return fmt.Sprintf("is %s, and its mediatype %s", found, icon.MediaType)
	}
	return ""
}

// checkDeprecations checks that each entry names an existing object, once.
func (l *linter) checkDeprecations(own *fbc.Config, say func(Severity, string, ...any)) {
	if len(own.Deprecations) > 1 {
		say(Error, "there are %d documents olm.deprecations, of which OLM uses the last one", len(own.Deprecations))
	}
	there := map[fbc.Reference]bool{{Schema: fbc.SchemaPackage}: true}
	for _, one := range own.Channels {
		there[fbc.Reference{Schema: fbc.SchemaChannel, Name: one.Name}] = true
	}
	for _, one := range own.Bundles {
		there[fbc.Reference{Schema: fbc.SchemaBundle, Name: one.Name}] = true
	}
	seen := map[fbc.Reference]bool{}
	for _, all := range own.Deprecations {
		for i, one := range all.Entries {
			at := fmt.Sprintf("entry %d of olm.deprecations", i+1)
			switch ref := one.Reference; {
			case ref.Schema == fbc.SchemaPackage && ref.Name != "":
				say(Error, "%s names the package %q: a reference to the package has no name", at, ref.Name)
			case !there[ref]:
				say(Error, "%s is about %s %q, which does not exist", at, ref.Schema, ref.Name)
			case seen[ref]:
				say(Error, "%s is about %s %q a second time", at, ref.Schema, ref.Name)
			}
			seen[one.Reference] = true
			if one.Message == "" {
				say(Warning, "%s has no message: it would show as not deprecated", at)
			}
		}
	}
}

// imageProblem returns the reason why a reference cannot be pulled; empty if it can.
func imageProblem(image string) string {
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return fmt.Sprintf("%q is no reference of an image: %v", image, err)
	}
	return ""
}
