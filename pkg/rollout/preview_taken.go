package rollout

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// mostTaken bounds the paths that are named of one manager.
const mostTaken = 200

// Taken are the fields that one manager has and would lose. Paths name no values,
// but for the keys of list items and the items of sets.
type Taken struct {
	Manager string
	// Subresource through which they write, such as "scale", or empty.
	Subresource string
	// Paths such as `.spec.replicas`, in order, with keys and indexes as package
	// diff spells them.
	Paths []string
	// More is how many paths are left out.
	More int
}

// taken compares managedFields before and after an apply by one manager. The
// server moves a field from its manager exactly when the apply changes its value.
func taken(before, after []metav1.ManagedFieldsEntry, by string) []Taken {
	kept := map[string]*fieldpath.Set{}
	for _, entry := range after {
		if set, err := fieldSet(entry); err == nil {
			kept[ownerOf(entry)] = set
		}
	}
	var all []Taken
	for _, entry := range before {
		if entry.Manager == by && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		lost, err := fieldSet(entry)
		if err != nil {
			continue
		}
		if left := kept[ownerOf(entry)]; left != nil {
			lost = lost.Difference(left)
		}
		one := Taken{Manager: entry.Manager, Subresource: entry.Subresource}
		lost.Leaves().Iterate(func(path fieldpath.Path) {
			if len(one.Paths) == mostTaken {
				one.More++
				return
			}
			one.Paths = append(one.Paths, spell(path))
		})
		if len(one.Paths) > 0 {
			slices.Sort(one.Paths)
			all = append(all, one)
		}
	}
	return all
}

// ownerOf tells the entries of managedFields apart, as the server does.
func ownerOf(entry metav1.ManagedFieldsEntry) string {
	return strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, "\x00")
}

// spell writes a path as package diff does.
func spell(path fieldpath.Path) string {
	var out strings.Builder
	for _, element := range path {
		switch {
		case element.FieldName != nil && manifest.IsIdentifier(*element.FieldName):
			out.WriteString("." + *element.FieldName)
		case element.FieldName != nil:
			out.WriteString("[" + quoted(*element.FieldName) + "]")
		case element.Key != nil:
			keys := make([]string, 0, len(*element.Key))
			for _, field := range *element.Key {
				keys = append(keys, field.Name+"="+spellValue(field.Value))
			}
			out.WriteString("[" + strings.Join(keys, ",") + "]")
		case element.Value != nil:
			out.WriteString("[=" + spellValue(*element.Value) + "]")
		case element.Index != nil:
			out.WriteString("[" + strconv.Itoa(*element.Index) + "]")
		}
	}
	return out.String()
}

func spellValue(v value.Value) string {
	return quoted(v.Unstructured())
}

// quoted is JSON without the escapes that are for HTML.
func quoted(v any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return `"?"` // what came as JSON can be written as JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}
