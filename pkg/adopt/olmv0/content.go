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

// Content is the manifest of an object of an operator: the fields that OLM wrote, and those that
// people have changed since, by hand, but for labels and annotations, which they may have added.
// Fields of controllers (replicas of an autoscaler, the bundle of a certificate authority) are
// left to them. Where OLM wrote nothing that is known, it is all of the object. People are the
// managers of those who changed it by hand.
//
// It has neither owners nor the labels by which OLM finds what it owns.
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

// written are the fields of OLM and of people, nil when nothing is known of OLM.
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

// withoutMetadata are the fields that are in no metadata, neither that of the object nor that of
// a template.
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

// isOLM reports whether a field manager is one of OLM's operators: olm is the program of
// olm-operator, and catalog that of catalog-operator.
func isOLM(manager string) bool {
	return manager == "olm" || manager == "catalog" || strings.HasPrefix(manager, "olm-") || strings.HasPrefix(manager, "catalog-operator")
}

// isPerson reports whether a field manager is a program that people type into.
func isPerson(manager string) bool {
	return manager == "kubectl" || strings.HasPrefix(manager, "kubectl-") || manager == "oc" || manager == "Mozilla" || manager == "k9s"
}
