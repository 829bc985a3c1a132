package chart

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Helm's annotations for the time at which an object is applied, and for its deletion.
const (
	hookAnnotation   = "helm.sh/hook"
	weightAnnotation = "helm.sh/hook-weight"
	policyAnnotation = "helm.sh/resource-policy"
	// teardownAnnotation is Penstock's annotation for objects that are not deleted.
	teardownAnnotation = "penstock.dev/teardown-policy"
)

// maxJobName limits a Job's name, because its Pods have the name as a label.
const maxJobName = 63

// hook is an object that is applied before or after all others, ordered by weight.
type hook struct {
	directory.Located
	weight int
}

// event describes when a hook runs.
type event struct {
	before, after   bool
	install         bool
	upgrade         bool
	test, forbidden bool
}

func events() map[string]event {
	return map[string]event{
		"pre-install":   {before: true, install: true},
		"pre-upgrade":   {before: true, upgrade: true},
		"post-install":  {after: true, install: true},
		"post-upgrade":  {after: true, upgrade: true},
		"crd-install":   {before: true, install: true},
		"test":          {test: true},
		"test-success":  {test: true},
		"test-failure":  {test: true},
		"pre-delete":    {forbidden: true},
		"post-delete":   {forbidden: true},
		"pre-rollback":  {forbidden: true},
		"post-rollback": {forbidden: true},
	}
}

func (o *objects) sortHooks(out *source.Rendered) error {
	all, everything := o.manifests, digestOf(o.manifests)
	o.manifests = nil
	tests := 0
	for _, one := range all {
		content, err := decode(one.Object)
		if err != nil {
			return err
		}
		names, is := annotation(content, hookAnnotation)
		if !is {
			o.manifests = append(o.manifests, one)
			continue
		}
		when, err := whenOf(one, names)
		if err != nil {
			return err
		}
		if when.test && !when.before && !when.after {
			tests++
			continue
		}
		if err := o.addHook(one, content, when, everything, out); err != nil {
			return err
		}
	}
	if tests > 0 {
		out.Warnings = append(out.Warnings, source.Warning{Message: fmt.Sprintf("test hooks are left out: %d", tests)})
	}
	return nil
}

// whenOf combines the events of a hook. It refuses events that a revision cannot have.
func whenOf(one directory.Located, names string) (event, error) {
	var when event
	for _, name := range strings.Split(names, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		known, is := events()[name]
		switch {
		case !is:
			return when, fail(one, "%s: annotation %s: %q is not a hook of Helm", describe(one.Object), hookAnnotation, name)
		case known.forbidden:
			return when, fail(one, "%s: annotation %s: a %s hook cannot be run, because nothing runs when a revision is applied or deleted; remove the hook, with a value of the chart if there is one",
				describe(one.Object), hookAnnotation, name)
		}
		when.before, when.after = when.before || known.before, when.after || known.after
		when.install, when.upgrade = when.install || known.install, when.upgrade || known.upgrade
		when.test = when.test || known.test
	}
	return when, nil
}

// addHook adds one hook. A Job's name has a digest of what it runs, because Jobs are immutable, and
// a Job of the same name does not run again. A hook that runs before and after the other objects is
// applied before them and kept, because later hooks need it, too. A Job runs twice, as two Jobs.
func (o *objects) addHook(one directory.Located, content map[string]any, when event, everything string, out *source.Rendered) error {
	added := hook{Located: one}
	if text, is := annotation(content, weightAnnotation); is {
		weight, err := strconv.Atoi(text)
		if err != nil {
			return fail(one, "%s: annotation %s: is %q, want a number", describe(one.Object), weightAnnotation, text)
		}
		added.weight = weight
	}
	switch one.GroupKind().String() {
	case "Pod":
		return fail(one, "%s: Penstock does not wait for a Pod that is a hook: make it a Job", describe(one.Object))
	case "Job.batch":
		withoutTTL(one, content, when, out)
		digest := digestOf([]directory.Located{one})
		if when.upgrade {
			digest = everything
		}
		if when.before && when.after {
			again := added
			var err error
			if again.Located, err = nameJob(one, content, digestOfText("after "+digest)); err != nil {
				return err
			}
			o.after = append(o.after, again)
		}
		var err error
		if added.Located, err = nameJob(one, content, digest); err != nil {
			return err
		}
	}
	if when.before {
		o.before = append(o.before, added)
	} else {
		o.after = append(o.after, added)
	}
	return nil
}

// withoutTTL removes the field that makes a Job delete itself, and warns of upgrade hooks.
func withoutTTL(one directory.Located, content map[string]any, when event, out *source.Rendered) {
	if spec, ok := content["spec"].(map[string]any); ok && spec["ttlSecondsAfterFinished"] != nil {
		// Penstock would repair a Job that deleted itself by creating it again.
		delete(spec, "ttlSecondsAfterFinished")
		out.Warnings = append(out.Warnings, source.Warning{File: one.File, Line: one.Line,
			Message: fmt.Sprintf("%s: spec.ttlSecondsAfterFinished is left out: a hook that is gone would be run again", describe(one.Object))})
	}
	if when.upgrade && !when.install {
		out.Warnings = append(out.Warnings, source.Warning{File: one.File, Line: one.Line,
			Message: fmt.Sprintf("%s: an upgrade hook also runs in the first installation", describe(one.Object))})
	}
}

// nameJob appends a digest to a Job's name. For a Job that runs at each upgrade it is the digest of
// all manifests, for other Jobs the digest of the Job.
func nameJob(one directory.Located, content map[string]any, digest string) (directory.Located, error) {
	suffix := "-" + digest[:10]
	base := one.Name
	if len(base)+len(suffix) > maxJobName {
		base = base[:maxJobName-len(suffix)]
	}
	named := runtime.DeepCopyJSON(content)
	named["metadata"].(map[string]any)["name"] = strings.TrimRight(base, "-.") + suffix
	return changed(one, named)
}

// hookPhases returns one phase per weight, lowest first.
func hookPhases(name string, hooks []hook) []source.Phase {
	slices.SortStableFunc(hooks, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var phases []source.Phase
	for i, one := range hooks {
		if i == 0 || one.weight != hooks[i-1].weight {
			phases = append(phases, source.Phase{Name: fmt.Sprintf("%s-%d", name, len(phases)+1)})
		}
		last := &phases[len(phases)-1]
		last.Objects = append(last.Objects, one.Object)
	}
	return phases
}

// keep converts Helm's policy to keep an object to Penstock's annotation.
func keep(one directory.Located) (directory.Located, error) {
	content, err := decode(one.Object)
	if err != nil {
		return one, err
	}
	if policy, is := annotation(content, policyAnnotation); !is || !strings.EqualFold(strings.TrimSpace(policy), "keep") {
		return one, nil
	}
	content["metadata"].(map[string]any)["annotations"].(map[string]any)[teardownAnnotation] = "Orphan"
	return changed(one, content)
}

func annotation(content map[string]any, name string) (value string, found bool) {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, found = annotations[name].(string)
	return value, found
}

func digestOf(all []directory.Located) string {
	hash := sha256.New()
	for _, one := range all {
		hash.Write(one.JSON)
		hash.Write([]byte("\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func digestOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func decode(object manifest.Object) (map[string]any, error) {
	content, err := applycheck.Decode(object.JSON)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object.ID, err)
	}
	return content, nil
}

// changed returns the object with other content, at the same place.
func changed(one directory.Located, content map[string]any) (directory.Located, error) {
	object, err := manifest.Canonical(runtime.DeepCopyJSON(content))
	if err != nil {
		return one, fail(one, "%s: %v", describe(one.Object), err)
	}
	one.Object = object
	return one, nil
}
