package olmv0

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
)

// Content returns the manifest of an operator's object. It has the fields that OLM wrote, and the
// fields that people changed by hand. It leaves out labels and annotations that people added. It
// also leaves out fields of controllers (replicas of an autoscaler, the bundle of a certificate
// authority). Without a field manager of OLM, it has all fields. People are the field managers of
// the manual changes.
//
// The manifest has no owners, and none of the labels by which OLM finds the objects that it owns.
func Content(live *unstructured.Unstructured) (content map[string]any, people []string, err error) {
	set, people, err := written(live.GetManagedFields())
	if err != nil {
		return nil, nil, fmt.Errorf("reading managedFields: %w", err)
	}
	content = live.DeepCopy().Object
	if set != nil {
		content = managedfields.Extract(content, set)
	}
	delete(content, "status")
	content["apiVersion"], content["kind"] = live.GetAPIVersion(), live.GetKind()
	metadata := map[string]any{"name": live.GetName()}
	if live.GetNamespace() != "" {
		metadata["namespace"] = live.GetNamespace()
	}
	all, _ := content["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		entries, _ := all[field].(map[string]any)
		for _, label := range OwnerLabels() {
			delete(entries, label)
		}
		if len(entries) > 0 {
			metadata[field] = entries
		}
	}
	content["metadata"] = metadata
	return content, people, nil
}

// written returns the fields of OLM and of people; nil when OLM manages no field.
func written(entries []metav1.ManagedFieldsEntry) (set *fieldpath.Set, people []string, err error) {
	set = fieldpath.NewSet()
	known := false
	for _, entry := range entries {
		ours, person := isOLM(entry.Manager), isPerson(entry.Manager)
		if entry.Subresource != "" || !ours && !person {
			continue
		}
		fields, err := managedfields.FieldSet(entry)
		if err != nil {
			return nil, nil, err
		}
		if person {
			if fields = withoutMetadata(fields); fields.Empty() {
				continue
			}
			people = append(people, entry.Manager)
		}
		set, known = set.Union(fields), known || ours
	}
	slices.Sort(people)
	if !known {
		return nil, nil, nil
	}
	return set, slices.Compact(people), nil
}

// withoutMetadata removes fields from the metadata of the object and of its template.
func withoutMetadata(fields *fieldpath.Set) *fieldpath.Set {
	out := fieldpath.NewSet()
	fields.Iterate(func(path fieldpath.Path) {
		inside := slices.ContainsFunc(path, func(one fieldpath.PathElement) bool { return one.FieldName != nil && *one.FieldName == "metadata" })
		if !inside {
			out.Insert(path.Copy())
		}
	})
	return out
}

// isOLM reports whether a field manager is one of OLM's operators. olm-operator's program is called
// olm, catalog-operator's program catalog.
func isOLM(manager string) bool {
	return manager == "olm" || manager == "catalog" || strings.HasPrefix(manager, "olm-") || strings.HasPrefix(manager, "catalog-operator")
}

// isPerson reports whether a field manager is an interactive client.
func isPerson(manager string) bool {
	return manager == "kubectl" || strings.HasPrefix(manager, "kubectl-") || manager == "oc" || manager == "Mozilla" || manager == "k9s"
}
