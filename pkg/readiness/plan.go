package readiness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// mostPassed limits the skipped versions that a step explains.
const mostPassed = 5

// Contents describes the objects in a version's bundle.
type Contents struct {
	// Kinds of the objects, without duplicates.
	Kinds []schema.GroupVersionKind
	// Defined are the versions of each CustomResourceDefinition in the bundle.
	Defined map[manifest.ID][]string
	// NotLooked is the reason why the bundle could not be rendered.
	NotLooked string
}

// ContentsOf describes rendered objects.
func ContentsOf(objects []manifest.Object) Contents {
	out := Contents{Defined: map[manifest.ID][]string{}}
	seen := map[schema.GroupVersionKind]bool{}
	for i := range objects {
		object := &objects[i]
		if kind := object.GroupVersionKind(); !seen[kind] {
			seen[kind], out.Kinds = true, append(out.Kinds, kind)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if !object.ID.IsDefinition() || json.Unmarshal(object.JSON, &definition) != nil {
			continue
		}
		versions := []string{}
		for i := range definition.Spec.Versions {
			versions = append(versions, definition.Spec.Versions[i].Name)
		}
		out.Defined[object.ID] = versions
	}
	return out
}

func requires(bundle *fbc.Bundle) []string {
	var out []string
	for _, property := range bundle.Properties {
		var required struct {
			PackageName string `json:"packageName"`
		}
		if property.Type == "olm.package.required" && json.Unmarshal(property.Value, &required) == nil && required.PackageName != "" {
			out = append(out, required.PackageName)
		}
	}
	return out
}

// excluded returns the reason why the publisher's statement excludes the target; empty if it does
// not.
func (c *Candidate) excluded(target Target) string {
	if why := cmp.Or(c.Statement.Wrong, c.Statement.excludes(target)); why != "" {
		return why
	}
	if c.Statement.needs(target.Kubernetes) {
		return "it needs Kubernetes " + c.Statement.Least.String()
	}
	return ""
}

// Excludes reports whether a version states that it does not support the target.
func (j *Judge) Excludes(one *Candidate) bool { return one.excluded(j.target) != "" }

// Settles reports whether a rendered version solves the findings and can be installed in the
// present cluster. Then the later versions need no rendering.
func (j *Judge) Settles(one *Candidate) bool { return j.unfit(one) == "" && !j.after(one) }

// unfit returns the reason why a version does not help. It is empty for a version that helps, and
// for an unrendered version when no steps are wanted.
func (j *Judge) unfit(one *Candidate) string {
	if why := one.excluded(j.target); why != "" {
		return why
	}
	switch {
	case !one.Rendered && j.planned:
		return "not rendered"
	case !one.Rendered:
		return ""
	case one.Contents.NotLooked != "":
		return "not looked at: " + one.Contents.NotLooked
	}
	for _, kind := range one.Contents.Kinds {
		if found, ok := j.api(kind, RolledOut); ok && found.Severity == v1alpha1.UpgradeBlocks {
			return fmt.Sprintf("it has %s %s, which Kubernetes %s does not serve", kind.GroupVersion(), kind.Kind, minor(j.target.Kubernetes))
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(one.Contents.Defined), manifest.ID.Compare) {
		for _, stored := range j.live.Definitions[id].Stored {
			if !slices.Contains(one.Contents.Defined[id], stored) {
				return fmt.Sprintf("it drops version %s of %s, in which objects may be stored", stored, id.Name)
			}
		}
	}
	return ""
}

// after reports whether a version can be installed only in the upgraded cluster.
func (j *Judge) after(one *Candidate) bool {
	if j.current == nil {
		return false
	}
	return one.Statement.needs(*j.current) || slices.ContainsFunc(one.Contents.Kinds, func(kind schema.GroupVersionKind) bool {
		life, known := j.table.Find(kind)
		return known && j.current.Less(life.Introduced)
	})
}

func (j *Judge) plan(one *Extension, row *v1alpha1.ExtensionReadiness) {
	var passed []string
	next := j.next(&one.Statement)
	for i := range one.Statement.Next {
		candidate := &one.Statement.Next[i]
		if candidate == next {
			break
		}
		if why := j.unfit(candidate); why != "" {
			passed = append(passed, candidate.Version+": "+why)
			switch {
			case row.NotLooked != "" || candidate.excluded(j.target) != "":
			case !candidate.Rendered:
				row.NotLooked = "version " + candidate.Version + " is not rendered"
			case candidate.Contents.NotLooked != "":
				row.NotLooked = "version " + candidate.Version + " could not be rendered"
			}
		}
	}
	if more := len(passed) - mostPassed; more > 0 {
		passed = append(passed[:mostPassed], fmt.Sprintf("and %d more", more))
	}
	if next == nil && len(passed) == 0 {
		return
	}
	step := v1alpha1.UpgradeStep{Extension: one.Name, Version: one.Version, Passed: strings.Join(passed, "; ")}
	if next != nil {
		step.Order, step.Next = row.Order, next.Version
		step.Command = fmt.Sprintf("kubectl penstock upgrade %s --version %s", one.Name, next.Version)
		j.required[one.Name] = next.Requires
	}
	j.packages[one.Statement.Package] = append(j.packages[one.Statement.Package], one.Name)
	j.answer.Steps = append(j.answer.Steps, step)
}

// ordered sorts the steps by group, and within a group by required packages.
func (j *Judge) ordered() {
	var out []v1alpha1.UpgradeStep
	for _, order := range []v1alpha1.UpgradeOrder{v1alpha1.UpgradeBefore, v1alpha1.UpgradeEither, v1alpha1.UpgradeAfter, v1alpha1.UpgradeDeadlock, ""} {
		steps := map[string]v1alpha1.UpgradeStep{}
		for _, step := range j.answer.Steps {
			if step.Order == order {
				steps[step.Extension] = step
			}
		}
		var take func(name string)
		take = func(name string) {
			step, waits := steps[name]
			if !waits {
				return
			}
			delete(steps, name) // deleted first, because packages can require each other
			for _, pkg := range j.required[name] {
				for _, other := range j.packages[pkg] {
					take(other)
				}
			}
			out = append(out, step)
		}
		for _, step := range j.answer.Steps {
			take(step.Extension)
		}
	}
	j.answer.Steps = out
}
