package managedfields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Drift is a field of the chain that another manager changed. It contains no value, because a value
// may be secret.
type Drift struct {
	// Path such as ".spec.replicas", in the spelling of managedFields.
	Path string
	// Manager is the present manager of the field. It is empty for a removed field, or without
	// managedFields.
	Manager string
	// Gone is true when the field does not exist any more.
	Gone bool
}

// String returns the path and the change.
func (d Drift) String() string {
	switch {
	case d.Gone:
		return d.Path + " was removed"
	case d.Manager == "":
		return d.Path + " was changed, and no field manager owns it"
	default:
		return fmt.Sprintf("%s was changed by %s", d.Path, d.Manager)
	}
}

// FindDrift returns the fields that differ from wanted in a live object, ordered by path, with
// their managers. A difference may exist without a finding (see Contains).
func FindDrift(wanted map[string]any, live *unstructured.Unstructured, manager string) []Drift {
	ours, status := &fieldpath.Set{}, &fieldpath.Set{}
	others := map[string]*fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		set, err := FieldSet(entry)
		if err != nil {
			continue
		}
		if entry.Subresource == "status" {
			status = status.Union(set)
			continue
		}
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			ours = set
			continue
		}
		if have, ok := others[entry.Manager]; ok {
			set = have.Union(set)
		}
		others[entry.Manager] = set
	}
	found := map[string]Drift{}
	for name, set := range others {
		set.Leaves().Iterate(func(path fieldpath.Path) {
			want, wants := resolve(wanted, path)
			have, has := resolve(live.Object, path)
			if !ours.Has(path) && wants && has && !equality.Semantic.DeepEqual(want, have) {
				found[path.String()] = Drift{Path: path.String(), Manager: name}
			}
		})
	}
	for _, one := range unclaimed(wanted, live.Object, ours.Union(status), "") {
		if _, ok := found[one.Path]; !ok {
			found[one.Path] = one
		}
	}
	drifts := slices.AppendSeq(make([]Drift, 0, len(found)), maps.Values(found))
	slices.SortFunc(drifts, func(a, b Drift) int { return strings.Compare(a.Path, b.Path) })
	return drifts
}

// unclaimed returns the paths of wanted maps that do not exist, and of other values that differ and
// are in no entry of kept. It ignores lists. An empty value in an entry is not lost: the server
// does not store it.
func unclaimed(wanted, live map[string]any, kept *fieldpath.Set, path string) []Drift {
	var out []Drift
	for key, want := range wanted {
		element := fieldpath.PathElement{FieldName: &key}
		have, there := live[key]
		below, isMap := want.(map[string]any)
		haveMap, _ := have.(map[string]any)
		switch {
		case want == nil, !there && empty(want) && kept.Members.Has(element):
		case !there:
			out = append(out, Drift{Path: path + "." + key, Gone: true})
		case isMap && haveMap != nil:
			out = append(out, unclaimed(below, haveMap, kept.WithPrefix(element), path+"."+key)...)
		case !isMap && isScalar(want) && !kept.Members.Has(element) && want != have:
			out = append(out, Drift{Path: path + "." + key})
		}
	}
	return out
}

// isScalar reports whether a value can be compared with ==.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}

// Describe returns a list of drifts of limited length for a message.
func Describe(drifts []Drift) string {
	const most = 5
	var parts []string
	for i, d := range drifts {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(drifts)-most))
			break
		}
		parts = append(parts, d.String())
	}
	if len(parts) == 0 {
		return "a value differs although no field manager owns it"
	}
	return strings.Join(parts, ", ")
}

// FirstManager returns the first known manager, or "".
func FirstManager(drifts []Drift) string {
	for _, d := range drifts {
		if d.Manager != "" {
			return d.Manager
		}
	}
	return ""
}
