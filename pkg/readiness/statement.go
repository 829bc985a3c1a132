package readiness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxOpenShift is the property with the last OpenShift version that a bundle supports.
const maxOpenShift = "olm.maxOpenShiftVersion"

// longest limits quoted texts of catalogs, in bytes.
const longest = 100

// Statement has the cluster versions that the publisher of an installed package supports.
type Statement struct {
	// Package is the package; empty without one.
	Package string
	// Least is the lowest supported Kubernetes version; nil if unstated.
	Least *clusterversion.Kubernetes
	// Most is the highest supported OpenShift version; nil if unstated.
	Most *clusterversion.OpenShift
	// Range is the kubeVersion range of a chart.
	Range string
	// Wrong describes the parts of the statement that cannot be parsed.
	Wrong string
	// Next are the versions that can follow the installed version, lowest first.
	Next []Candidate
}

// Candidate is a possible next version.
type Candidate struct {
	Version, Channel string
	// Catalog is the ClusterCatalog that offers the version. Image is its bundle image. Requires
	// are the packages that it requires.
	Catalog   string
	Image     string
	Requires  []string
	Statement Statement
	// Rendered is true if Contents are known.
	Rendered bool
	Contents Contents
}

// String returns text such as "Kubernetes >= 1.25.0, OpenShift <= 4.20"; empty without a statement.
func (s *Statement) String() string {
	var parts []string
	if s.Least != nil {
		parts = append(parts, "Kubernetes >= "+s.Least.String())
	}
	if s.Range != "" {
		parts = append(parts, "Kubernetes "+text.Line(s.Range, longest))
	}
	if s.Most != nil {
		parts = append(parts, fmt.Sprintf("OpenShift <= %d.%d", s.Most.Major, s.Most.Minor))
	}
	return strings.Join(parts, ", ")
}

// StatedBy returns the catalogs' statements about an installed bundle and about later bundles. The
// catalog with the installed bundle decides. If no catalog has it, all catalogs with the package
// count. An unreadable catalog is an error unless another catalog has the bundle.
func StatedBy(catalogs []resolve.Catalog, pkg, bundle, version string) (Statement, error) {
	out := Statement{Package: pkg}
	at := graph.Installed{Name: bundle}
	if parsed, err := fbc.ParseVersion(version); err == nil {
		at.Version = parsed
	}
	var failed error
	for i := range catalogs {
		one := &catalogs[i]
		switch {
		case one.Err != nil:
			failed = one.Err
		case one.Unavailable:
			failed = fmt.Errorf("catalog %s is unavailable", one.Name)
		case one.Config != nil:
			upgrades := graph.New(one.Config, nil)
			next := nextOf(one.Name, upgrades, at)
			if node := upgrades.Node(bundle); node != nil {
				out = ofBundle(node.Bundle)
				out.Package, out.Next = pkg, next
				return out, nil
			}
			out.Next = append(out.Next, next...)
		}
	}
	slices.SortStableFunc(out.Next, func(a, b Candidate) int {
		// Both versions were parsed before.
		left, _ := fbc.ParseVersion(a.Version)
		right, _ := fbc.ParseVersion(b.Version)
		return left.Compare(right)
	})
	return out, failed
}

// nextOf returns the bundles of a catalog that one upgrade step reaches, lowest first.
func nextOf(catalog string, upgrades *graph.Graph, at graph.Installed) []Candidate {
	var nodes []*graph.Node
	channels := map[*graph.Node]string{}
	for _, step := range upgrades.Successors(at) {
		if node := upgrades.Node(step.Bundle); node != nil && node.Readable && !node.Deprecated && channels[node] == "" {
			nodes, channels[node] = append(nodes, node), step.Channel
		}
	}
	slices.SortFunc(nodes, func(a, b *graph.Node) int { return a.Version.Compare(b.Version) })
	var out []Candidate
	for _, node := range nodes {
		out = append(out, Candidate{
			Version: node.Version.String(), Channel: text.Line(channels[node], longest), Catalog: catalog, Image: node.Bundle.Image,
			Requires: requires(node.Bundle), Statement: ofBundle(node.Bundle),
		})
	}
	return out
}

func ofBundle(bundle *fbc.Bundle) Statement {
	var out Statement
	if least, found := resolve.MinKubernetes(bundle); found {
		out.Least = &least
	}
	var bounds []json.RawMessage
	for _, property := range bundle.Properties {
		if property.Type == maxOpenShift {
			bounds = append(bounds, property.Value)
		}
	}
	switch len(bounds) {
	case 0:
	case 1:
		out.Most, out.Wrong = bound(bounds[0])
	default:
		out.Wrong = fmt.Sprintf("its bundle has property %s %d times, want once", maxOpenShift, len(bounds))
	}
	return out
}

// bound parses major.minor. Like OLM, it accepts nothing else.
func bound(value json.RawMessage) (*clusterversion.OpenShift, string) {
	stated := strings.Trim(string(value), `"`)
	version, err := clusterversion.ParseOpenShift(stated)
	if err != nil || fmt.Sprintf("%d.%d", version.Major, version.Minor) != strings.TrimPrefix(stated, "v") {
		return nil, fmt.Sprintf("its bundle has property %s %q, want major.minor such as 4.20", maxOpenShift, text.Line(stated, longest))
	}
	return &version, ""
}

// excludes returns the reason why a statement excludes the target; empty if it does not. An upper
// bound of OpenShift counts only for a target version of OpenShift.
func (s *Statement) excludes(target Target) string {
	switch {
	case s.Most != nil && target.OpenShift != nil && release(*s.Most) < release(*target.OpenShift):
		return fmt.Sprintf("the package states that OpenShift %d.%d is the last one that it supports", s.Most.Major, s.Most.Minor)
	case s.Range != "" && !within(s.Range, target.Kubernetes):
		return fmt.Sprintf("the chart states that it supports Kubernetes %s", text.Line(s.Range, longest))
	}
	return ""
}

// bounds reports whether a statement has an upper bound for the target.
func (s *Statement) bounds(target Target) bool {
	return s.Range != "" && !within(s.Range, clusterversion.Kubernetes{Major: 1, Minor: farAway}) || s.Most != nil && target.OpenShift != nil
}

// farAway is a minor version of Kubernetes that is only in a range without an upper bound.
const farAway = 9999

// StatedIn returns the statement in the annotations of a revision, which Penstock copied from the
// chart or bundle.
func StatedIn(annotations map[string]string) Statement {
	out := Statement{Range: annotations[v1alpha1.KubeVersionAnnotation]}
	if value := annotations[v1alpha1.MaxOpenShiftAnnotation]; value != "" {
		out.Most, out.Wrong = bound(json.RawMessage(value))
	}
	return out
}

// Or adopts the upper bounds of another statement if this statement has none.
func (s *Statement) Or(other Statement) {
	if s.Range == "" && s.Most == nil && s.Wrong == "" {
		s.Range, s.Most, s.Wrong = other.Range, other.Most, other.Wrong
	}
}

// within reports whether a version is in a chart's range. It accepts an invalid range, since
// rendering refuses the chart.
func within(wanted string, version clusterversion.Kubernetes) bool {
	allowed, err := semver.NewConstraint(wanted)
	return err != nil || allowed.Check(semver.New(uint64(version.Major), uint64(version.Minor), uint64(version.Patch), "", ""))
}

// statement judges the publisher's statement.
func (j *Judge) statement(one *Extension, row *v1alpha1.ExtensionReadiness) {
	said := &one.Statement
	if said.Wrong != "" && j.target.OpenShift != nil {
		row.NotLooked = strings.TrimPrefix(row.NotLooked+"; "+said.Wrong, "; ")
	}
	why := said.excludes(j.target)
	if why == "" {
		return
	}
	found := v1alpha1.UpgradeFinding{
		Severity: v1alpha1.UpgradeBlocks, Certainty: v1alpha1.UpgradeCertain, Extension: one.Name, Revision: row.Revision,
		Field: "statement", Evidence: why, Fix: "kubectl penstock upgrades " + one.Name,
	}
	if said.Range != "" && said.Package == "" {
		found.Fix = "kubectl penstock why " + one.Name
	}
	if next := j.next(said); next != nil {
		found.Evidence += fmt.Sprintf("; version %s in channel %s does not exclude %s", next.Version, next.Channel, j.target.Name)
	}
	j.answer.Findings = append(j.answer.Findings, found)
}

// next returns the lowest version that helps. A version that needs the upgraded cluster is only the
// second choice.
func (j *Judge) next(said *Statement) *Candidate {
	var later *Candidate
	for i := range said.Next {
		one := &said.Next[i]
		if j.unfit(one) != "" {
			continue
		}
		if !j.after(one) {
			return one
		}
		if later == nil {
			later = one
		}
	}
	return later
}

// needs reports whether a bundle needs a newer Kubernetes than this version.
func (s *Statement) needs(version clusterversion.Kubernetes) bool {
	return s.Least != nil && version.Less(*s.Least)
}

func (j *Judge) order(one *Extension, row *v1alpha1.ExtensionReadiness, blocks bool) {
	next := j.next(&one.Statement)
	if next == nil {
		return
	}
	row.Next = next.Version
	after := j.after(next)
	switch {
	case blocks && after:
		row.Order = v1alpha1.UpgradeDeadlock
	case blocks:
		row.Order = v1alpha1.UpgradeBefore
	case after:
		row.Order = v1alpha1.UpgradeAfter
	default:
		row.Order = v1alpha1.UpgradeEither
	}
}
