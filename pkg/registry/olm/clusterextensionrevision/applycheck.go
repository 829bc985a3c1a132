package clusterextensionrevision

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxApplyWarnings bounds the warnings of one request: the library sends at most 4 KiB of them.
const maxApplyWarnings = 8

// ApplyCheck predicts refusals of server-side apply.
type ApplyCheck interface {
	// Check returns the manifests that a cluster would refuse if all are applied together. The
	// Secret names the cluster; an empty name means the default target.
	Check(ctx context.Context, secret string, objects []manifest.Object) ([]applycheck.Refusal, error)
	// Foresee returns manifests that server-side apply accepts, but that certainly fail in the
	// cluster.
	Foresee(ctx context.Context, secret string, objects []manifest.Object) []applycheck.Note
}

// applicable wraps the validation of a create: it refuses manifests that server-side apply cannot
// accept. The check is the last before the write, so that users without rights in a cluster learn
// nothing about its types.
//
// Manifests of an earlier revision or of an import may have been rolled out before this check
// existed. They only cause warnings.
func (r *REST) applicable(validate rest.ValidateObjectFunc, objects []manifest.Object) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj); err != nil {
				return err
			}
		}
		revision, held := obj.(*olm.ClusterExtensionRevision), stagedFrom(ctx)
		refusals, err := r.applyCheck.Check(ctx, revision.Target(), objects)
		if err != nil {
			return asStatus(fmt.Errorf("checking whether the manifests of %s can be applied: %w", revision.Name, err))
		}
		if len(refusals) == 0 {
			warn(ctx, r.foreseen(ctx, revision, objects))
			return nil
		}
		r.withoutHidden(revision, objects, refusals)
		before := factsIn(held.chain())
		borrowed := held.lent()
		var errs field.ErrorList
		var warnings []string
		for _, refusal := range refusals {
			object := objects[refusal.Object]
			_, lent := borrowed[object.Digest]
			_, known := before[keyOfManifest(object)]
			switch {
			case lent && object.IsSecret():
				// The caller cannot read this Secret.
			case lent || known || refusal.Unsure || pastFrom(ctx) != nil:
				warnings = append(warnings, doubts(object.ID, refusal)...)
			default:
				errs = append(errs, refused(pathOfEntry(revision, refusal.Object), object.ID, refusal)...)
			}
		}
		if len(errs) > 0 {
			warn(ctx, warnings)
			return invalid(revision, bounded(errs))
		}
		warn(ctx, append(warnings, r.foreseen(ctx, revision, objects)...))
		return nil
	}
}

// foreseen returns warnings of certain failures. Imported revisions were rolled out before, and
// archived revisions are not rolled out, so they get none.
func (r *REST) foreseen(ctx context.Context, revision *olm.ClusterExtensionRevision, objects []manifest.Object) []string {
	if pastFrom(ctx) != nil || revision.Spec.LifecycleState == olm.LifecycleStateArchived {
		return nil
	}
	warnings := tooEarly(revision, objects)
	at := map[string]int{}
	more := map[string]int{}
	for _, note := range r.applyCheck.Foresee(ctx, revision.Target(), objects) {
		// Many objects may be in one missing namespace.
		if _, said := at[note.Message]; said {
			more[note.Message]++
			continue
		}
		at[note.Message] = len(warnings)
		warnings = append(warnings, fmt.Sprintf("%s: %s", objects[note.Object].ID, note.Message))
	}
	for message, count := range more {
		warnings[at[message]] += fmt.Sprintf(" (and %s more)", text.Count(count, "object"))
	}
	return warnings
}

// tooEarly returns warnings about objects whose kind a later phase of the revision defines.
func tooEarly(revision *olm.ClusterExtensionRevision, objects []manifest.Object) []string {
	var phases []int
	eachObject(revision, func(phase, _ int, _ *olm.RevisionObject) { phases = append(phases, phase) })
	if len(phases) != len(objects) {
		return nil // collect refuses it
	}
	var warnings []string
	for _, early := range release.TooEarly(objects, func(i int) int { return phases[i] }) {
		warnings = append(warnings, early.String())
	}
	return warnings
}

// withoutHidden shortens findings whose text may contain hidden values of objects. quietly knows
// only the hidden values of inline manifests.
func (r *REST) withoutHidden(revision *olm.ClusterExtensionRevision, objects []manifest.Object, refusals []applycheck.Refusal) {
	inline := map[entryKey]bool{}
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		if entry.Object != nil {
			inline[keyOf(entry)] = true
		}
	})
	for i := range refusals {
		object := objects[refusals[i].Object]
		if inline[keyOfManifest(object)] || !r.redactor.Hides(object.GroupKind()) {
			continue
		}
		for f := range refusals[i].List {
			refusals[i].List[f].Problem = "server-side apply refuses it"
		}
	}
}

// refused returns the errors about the object at a path.
func refused(at *field.Path, id manifest.ID, refusal applycheck.Refusal) field.ErrorList {
	var errs field.ErrorList
	for _, found := range refusal.List {
		path := at.Child("object").String()
		if inner := found.Path.String(); inner != "" {
			path += "." + inner
		}
		errs = append(errs, &field.Error{Type: typeOf(found.Reason), Field: path, BadValue: field.OmitValueType{}, Detail: fmt.Sprintf("%s: %s", id, found.Problem)})
	}
	if refusal.Omitted > 0 {
		errs = append(errs, field.Invalid(at.Child("object"), field.OmitValueType{}, fmt.Sprintf("%s: %d more of this kind", id, refusal.Omitted)))
	}
	return errs
}

func typeOf(reason applycheck.Reason) field.ErrorType {
	switch reason {
	case applycheck.Duplicate, applycheck.NoKey, applycheck.Undecodable:
		return field.ErrorTypeInvalid
	case applycheck.Unknown:
		return field.ErrorTypeForbidden
	default:
		return field.ErrorTypeTypeInvalid
	}
}

// doubts returns warnings about an object that is accepted.
func doubts(id manifest.ID, refusal applycheck.Refusal) []string {
	why := "server-side apply refuses this, and a rollout stops at it"
	if refusal.Unsure {
		why = "server-side apply may refuse this: the types of the cluster could not be read"
	}
	var list []string
	for _, found := range refusal.List {
		list = append(list, fmt.Sprintf("%s: %s (%s)", id, found, why))
	}
	return list
}

func warn(ctx context.Context, warnings []string) {
	for _, one := range warnings[:min(len(warnings), maxApplyWarnings)] {
		warning.AddWarning(ctx, "", one)
	}
	if more := len(warnings) - maxApplyWarnings; more > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("and %d more warnings of this kind", more))
	}
}

// bounded keeps the first errors, and adds the number of omitted errors.
func bounded(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxManifestErrors {
		return errs
	}
	more := len(errs) - maxManifestErrors
	return append(errs[:maxManifestErrors:maxManifestErrors], field.Invalid(field.NewPath("spec", "phases"), field.OmitValueType{}, fmt.Sprintf("%d more errors in manifests", more)))
}

// pathOfEntry returns the field path of the object with the given index in rollout order.
func pathOfEntry(revision *olm.ClusterExtensionRevision, index int) *field.Path {
	path, n := field.NewPath("spec", "phases"), 0
	eachObject(revision, func(p, e int, _ *olm.RevisionObject) {
		if n == index {
			path = objectPath(p, e)
		}
		n++
	})
	return path
}
