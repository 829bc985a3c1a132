package applycheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Surroundings are the facts of a cluster that objects depend on.
type Surroundings interface {
	// Versions returns the versions in which the cluster serves a kind.
	Versions(ctx context.Context, kind schema.GroupKind) ([]string, error)
	// HasNamespace reports whether a namespace exists.
	HasNamespace(ctx context.Context, name string) (bool, error)
}

// Note describes an effect on an object that will happen and that can surprise its author.
type Note struct {
	// Object is the index of the object.
	Object  int
	Message string
}

// Foresee describes objects that certainly fail, or become another object, although the API server
// would accept each of them:
//
//   - Its namespace does not exist, and is not among the objects.
//   - Its kind is not served, and no definition among the objects defines it.
//   - A Job deletes itself.
//   - An aggregated ClusterRole has rules.
//
// After the first failed request, the surroundings are not asked again. A missing answer is no
// finding. Every cluster serves kinds of Kubernetes in a stable version, so no request is sent for
// them.
func Foresee(ctx context.Context, builtin *BuiltinTypes, in Surroundings, objects []manifest.Object) []Note {
	f := foresight{builtin: builtin, definitions: NewDefinitions(builtin, objects), in: in, namespaces: map[string]bool{}, versions: map[schema.GroupKind][]string{}}
	for _, object := range objects {
		if object.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			f.namespaces[object.Name] = true
		}
	}
	var notes []Note
	for i := range objects {
		for _, message := range f.notes(ctx, &objects[i]) {
			notes = append(notes, Note{i, message})
		}
	}
	return notes
}

type foresight struct {
	builtin     *BuiltinTypes
	definitions *Definitions
	in          Surroundings
	namespaces  map[string]bool
	versions    map[schema.GroupKind][]string
}

func (f *foresight) notes(ctx context.Context, object *manifest.Object) (notes []string) {
	if !f.served(ctx, object, &notes) {
		return notes
	}
	if object.Namespace != "" && !f.hasNamespace(ctx, object.Namespace) {
		notes = append(notes, fmt.Sprintf("Namespace %s does not exist and is not part of the revision: the rollout waits until it exists", object.Namespace))
	}
	switch object.GroupKind().String() {
	case "Job.batch":
		if seconds := valueAt(object, "spec", "ttlSecondsAfterFinished"); seconds != nil {
			notes = append(notes, fmt.Sprintf("spec.ttlSecondsAfterFinished: the Job deletes itself %v s after it has finished, and is not run again", seconds))
		}
	case "ClusterRole.rbac.authorization.k8s.io":
		if rule, _ := valueAt(object, "aggregationRule").(map[string]any); rule != nil && hasField(object, "rules") {
			notes = append(notes, "rules are left out: the control plane fills the rules of a ClusterRole with aggregationRule")
		}
	}
	return notes
}

// served reports whether the cluster serves the kind, or cannot say. It adds a note if the kind is
// not served.
func (f *foresight) served(ctx context.Context, object *manifest.Object, notes *[]string) bool {
	kind := object.GroupVersionKind()
	f.definitions.TypeOf(kind) // parses the definitions of the group
	if f.definitions.Defines(kind.GroupKind()) || isStable(kind.Version) && f.builtin.TypeOf(kind) != nil {
		return true
	}
	versions, known := f.versions[kind.GroupKind()]
	if !known && f.in != nil {
		var err error
		if versions, err = f.in.Versions(ctx, kind.GroupKind()); err != nil {
			f.in = nil
		}
		f.versions[kind.GroupKind()] = versions
	}
	switch {
	case f.in == nil || slices.Contains(versions, kind.Version):
		return true
	case len(versions) == 0:
		*notes = append(*notes, fmt.Sprintf("the cluster does not serve %s in %s, and the revision does not define it: the rollout stops at this object", kind.Kind, kind.GroupVersion()))
	default:
		*notes = append(*notes, fmt.Sprintf("the cluster does not serve %s in %s, but in %s: the rollout stops at this object; write it in a version that is served", kind.Kind, kind.GroupVersion(), strings.Join(versions, ", ")))
	}
	return false
}

// isStable reports whether a version is stable. Clusters enable stable versions by default.
func isStable(version string) bool {
	return !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
}

func (f *foresight) hasNamespace(ctx context.Context, name string) bool {
	has, known := f.namespaces[name]
	if known || f.in == nil {
		return has || !known
	}
	has, err := f.in.HasNamespace(ctx, name)
	if err != nil {
		f.in, has = nil, true
	}
	f.namespaces[name] = has
	return has
}

func hasField(object *manifest.Object, field string) bool {
	content, err := Decode(object.JSON)
	if err != nil {
		return false
	}
	_, has := content[field]
	return has
}

// valueAt returns the value of a field, or nil.
func valueAt(object *manifest.Object, path ...string) any {
	content, err := Decode(object.JSON)
	if err != nil {
		return nil
	}
	var value any = content
	for _, name := range path {
		of, _ := value.(map[string]any)
		value = of[name]
	}
	return value
}
