// Package release reads the annotations with which a manifest of an OpenShift release controls its
// own rollout: create-only, and the install level. It is pure. Other packages apply the result.
package release

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	prefix = "release.openshift.io/"
	// CreateOnlyAnnotation is "true" on an object that is created if it is absent and never changed
	// after that.
	CreateOnlyAnnotation = prefix + "create-only"
	// InstallLevelAnnotation is the install level at which a create-only object is created: "0"
	// (the default) or "1".
	InstallLevelAnnotation = prefix + "install-level"
	// DeleteAnnotation is "true" on an object that is to be deleted.
	DeleteAnnotation = prefix + "delete"
	// Levels is the number of install levels.
	Levels = 2
)

// Mark holds the rollout instructions of a manifest. The zero value means the default rollout.
type Mark struct {
	// CreateOnly is true for objects that are created if they are absent, and never changed.
	CreateOnly bool
	// Level is the install level, 0 or 1.
	Level int
}

// Offence is an invalid annotation of a manifest.
type Offence struct {
	ID manifest.ID
	// Annotation is its key; empty if the annotations are no map.
	Annotation string
	// Value is the value in JSON, shortened.
	Value string
	// Allowed describes the allowed values.
	Allowed string
}

// String names the object, the value and the allowed values.
func (o Offence) String() string {
	if o.Annotation == "" {
		return fmt.Sprintf("%s: metadata.annotations is %s, %s", o.ID, o.Value, o.Allowed)
	}
	return fmt.Sprintf("%s: annotation %s is %s, %s", o.ID, o.Annotation, o.Value, o.Allowed)
}

// MarkOf returns the rollout instructions of a manifest, and all invalid annotations. With an
// offence, the mark has no meaning.
func MarkOf(object manifest.Object) (Mark, []Offence) {
	// Canonical JSON does not escape slashes, so JSON with one of the annotations contains these
	// bytes. Most manifests do not.
	if !bytes.Contains(object.JSON, []byte(prefix)) {
		return Mark{}, nil
	}
	var content struct {
		Metadata struct {
			Annotations json.RawMessage `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return Mark{}, []Offence{{ID: object.ID, Value: "unreadable", Allowed: err.Error()}}
	}
	raw := content.Metadata.Annotations
	if len(raw) == 0 {
		return Mark{}, nil
	}
	// The values are read as raw JSON. A map of strings would be empty if one value is no string,
	// and every check would pass.
	var annotations map[string]json.RawMessage
	if err := json.Unmarshal(raw, &annotations); err != nil {
		return Mark{}, []Offence{{ID: object.ID, Value: Shown(raw), Allowed: "want a map of strings"}}
	}
	return markOf(object.ID, annotations)
}

func markOf(id manifest.ID, annotations map[string]json.RawMessage) (Mark, []Offence) {
	var offences []Offence
	// text returns an annotation if it exists and has an allowed value.
	text := func(key, allowed string, values ...string) (value string, found bool) {
		raw, found := annotations[key]
		if !found {
			return "", false
		}
		given, isText := Text(raw)
		if !isText || !slices.Contains(values, given) {
			offences = append(offences, Offence{ID: id, Annotation: key, Value: Shown(raw), Allowed: allowed})
			return "", true
		}
		return given, true
	}
	only, onlyFound := text(CreateOnlyAnnotation, `want "true" or "false"`, "true", "false")
	level, levelFound := text(InstallLevelAnnotation, `want "0" or "1"`, "0", "1")
	removed, removedFound := annotations[DeleteAnnotation]
	mark := Mark{CreateOnly: only == "true"}
	if level == "1" {
		mark.Level = 1
	}
	// An invalid create-only value has been reported already.
	if levelFound && only != "true" && (!onlyFound || only == "false") {
		offences = append(offences, Offence{
			ID: id, Annotation: InstallLevelAnnotation, Value: Shown(annotations[InstallLevelAnnotation]),
			Allowed: fmt.Sprintf("which needs %s: \"true\" beside it", CreateOnlyAnnotation),
		})
	}
	if removedFound && (levelFound || mark.CreateOnly) {
		offences = append(offences, Offence{
			ID: id, Annotation: DeleteAnnotation, Value: Shown(removed),
			Allowed: "which cannot be combined with " + CreateOnlyAnnotation + " or " + InstallLevelAnnotation,
		})
	}
	if len(offences) > 0 {
		return Mark{}, offences
	}
	return mark, nil
}

// Check returns all offences of some manifests, sorted.
func Check(objects []manifest.Object) []Offence {
	var offences []Offence
	for _, object := range objects {
		_, found := MarkOf(object)
		offences = append(offences, found...)
	}
	slices.SortFunc(offences, Offence.compare)
	return offences
}

func (o Offence) compare(other Offence) int {
	return cmp.Or(cmp.Compare(o.ID.String(), other.ID.String()), cmp.Compare(o.Annotation, other.Annotation), cmp.Compare(o.Allowed, other.Allowed))
}

// Text returns the string in a JSON value, and false for null and other types.
func Text(raw json.RawMessage) (string, bool) {
	// A pointer distinguishes null from the empty string.
	var value *string
	if err := json.Unmarshal(raw, &value); err != nil || value == nil {
		return "", false
	}
	return *value, true
}

// maxValue is the largest size of a shown value, in bytes.
const maxValue = 64

// Shown returns a value as JSON, shortened.
func Shown(raw json.RawMessage) string {
	return text.Clip(string(raw), maxValue)
}

// LookAlikes describes annotations that look like install levels but have no effect: another
// spelling of the key, or the key on a pod template.
func LookAlikes(object manifest.Object) []string {
	if !bytes.Contains(bytes.ToLower(object.JSON), []byte("install-level")) {
		return nil
	}
	type metadata struct {
		Annotations map[string]any `json:"annotations"`
	}
	var content struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Template struct {
				Metadata metadata `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return nil // the object has no template
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(content.Metadata.Annotations)) {
		if key != InstallLevelAnnotation && isLookAlike(key) {
			found = append(found, fmt.Sprintf("annotation %q has no effect: the install level is %s", key, InstallLevelAnnotation))
		}
	}
	if _, ok := content.Spec.Template.Metadata.Annotations[InstallLevelAnnotation]; ok {
		found = append(found, InstallLevelAnnotation+" on the pod template has no effect: it belongs on the object itself")
	}
	return found
}

func isLookAlike(key string) bool {
	_, name, found := bytes.Cut(bytes.ToLower([]byte(key)), []byte("/"))
	if !found {
		name = bytes.ToLower([]byte(key))
	}
	name = bytes.ReplaceAll(bytes.TrimSpace(name), []byte("_"), []byte("-"))
	return string(name) == "install-level" || string(name) == "install-levels" || string(name) == "installlevel"
}
