package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// versionLabels returns the labels that charts and operators set on all their objects and change
// with every version.
func versionLabels() []string { return []string{"app.kubernetes.io/version", "helm.sh/chart"} }

// isTemplate reports whether a path is that of the object's template of a pod or Job.
func isTemplate(id manifest.ID, path string) bool {
	switch id.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		if path == ".spec.jobTemplate" {
			return true
		}
	case schema.GroupKind{Kind: "PodTemplate"}:
		return path == ".template"
	}
	template := review.TemplatePath(id)
	return len(template) > 0 && path == "."+strings.Join(template, ".")
}

// maxLabelBytes is the largest value of a label in a line about labels.
const maxLabelBytes = 128

// onlyLabels describes the change of version labels. It is empty when another part of the object
// changes, or when a note is more than information. labels are the labels that no selector uses.
func onlyLabels(change *Change, labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	// Lines of the unified diff only repeat the fields.
	left := change.Truncated
	left.Lines = 0
	whole := change.Kind == Changed && change.OldVersion == change.NewVersion && change.NotCompared == "" && left.IsZero()
	if !whole || len(change.Fields) == 0 || warned(change.Notes) {
		return ""
	}
	var parts []string
	for i := range change.Fields {
		field := &change.Fields[i]
		label := labelAt(change.ID, field.Path, labels)
		from, known := labelValue(field.Old)
		to, knownToo := labelValue(field.New)
		if label == "" || field.Redacted || !known || !knownToo {
			return ""
		}
		if part := fmt.Sprintf("%s %s → %s", label, from, to); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func warned(notes []review.Note) bool {
	return slices.ContainsFunc(notes, func(one review.Note) bool { return one.Severity != note.Info })
}

// labelAt returns the label at a path in the metadata of an object or its template; empty for any
// other field.
func labelAt(id manifest.ID, path string, labels []string) string {
	for _, label := range labels {
		at, found := strings.CutSuffix(path, ".metadata.labels["+printable.Quote(label)+"]")
		if found && (at == "" || isTemplate(id, at)) {
			return label
		}
	}
	return ""
}

// labelValue returns a value for one line. A missing label has the value none.
func labelValue(raw json.RawMessage) (string, bool) {
	if raw == nil {
		return "none", true
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil || len(value) > maxLabelBytes {
		return "", false
	}
	if value == "" || value == "none" {
		return printable.Quote(value), true
	}
	return printable.Line(value), true
}

// unselected returns the version labels that the objects use only as labels. If a selector or
// another field names a label, the label has an effect on objects.
func unselected(sets ...[]manifest.Object) []string {
	labels := versionLabels()
	for _, set := range sets {
		for i := range set {
			labels = slices.DeleteFunc(labels, func(label string) bool { return names(set[i].JSON, label) })
		}
	}
	return labels
}

// names reports whether an object names a label, except as the key of its own labels or
// annotations. Descriptions of schema fields do not count.
func names(raw []byte, label string) bool {
	if !bytes.Contains(raw, []byte(label)) {
		return false
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return true
	}
	return namesBelow(object, label)
}

func namesBelow(value any, label string) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, label)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return namesBelow(item, label) })
	case map[string]any:
		for key, item := range value {
			metadata, isMap := item.(map[string]any)
			_, isText := item.(string)
			switch {
			case key == "description" && isText:
			case strings.HasSuffix(key, "etadata") && isMap: // also podMetadata, inheritedMetadata
				for part, of := range metadata {
					if part != "labels" && part != "annotations" && namesBelow(of, label) {
						return true
					}
				}
			case strings.Contains(key, label), namesBelow(item, label):
				return true
			}
		}
	}
	return false
}
