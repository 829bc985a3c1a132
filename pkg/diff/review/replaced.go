package review

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Replaced are deleted ConfigMaps and Secrets that a new object replaces.
type Replaced map[manifest.ID]bool

// NewReplaced finds replaced objects: tools put a digest of the content, or a number, after the
// last hyphen of a name. The new object must have the same keys, and at least as many new objects
// as deleted ones must exist, so that a sibling is no replacement.
func NewReplaced(old, new []manifest.Object) Replaced {
	before, after := ids(old), ids(new)
	added := make(map[manifest.ID][]*manifest.Object)
	for i := range new {
		if stem, ok := stemOf(new[i].ID); ok && !before[new[i].ID] {
			added[stem] = append(added[stem], &new[i])
		}
	}
	deleted := make(map[manifest.ID][]*manifest.Object)
	for i := range old {
		if stem, ok := stemOf(old[i].ID); ok && !after[old[i].ID] && added[stem] != nil {
			deleted[stem] = append(deleted[stem], &old[i])
		}
	}
	replaced := Replaced{}
	for stem, gone := range deleted {
		if len(gone) > len(added[stem]) {
			continue
		}
		for _, one := range gone {
			replaced[one.ID] = slices.ContainsFunc(added[stem], func(other *manifest.Object) bool {
				has := keysOf(other)
				return len(keysOf(one)) > 0 && !slices.ContainsFunc(keysOf(one), func(key string) bool { return !slices.Contains(has, key) })
			})
		}
	}
	return replaced
}

func ids(objects []manifest.Object) map[manifest.ID]bool {
	all := make(map[manifest.ID]bool, len(objects))
	for i := range objects {
		all[objects[i].ID] = true
	}
	return all
}

// stemOf returns the identity of a ConfigMap or Secret without the generated last part of its name;
// false if that part is not generated. A part without digits counts as a word.
func stemOf(id manifest.ID) (manifest.ID, bool) {
	at := strings.LastIndex(id.Name, "-")
	if id.Group != "" || id.Kind != "ConfigMap" && id.Kind != "Secret" || at < 0 || !strings.ContainsAny(id.Name[at:], "0123456789") {
		return id, false
	}
	id.Name = id.Name[:at]
	return id, true
}

func keysOf(object *manifest.Object) []string {
	var content struct {
		Data, BinaryData, StringData map[string]json.RawMessage
	}
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return nil
	}
	var keys []string
	for _, data := range []map[string]json.RawMessage{content.Data, content.BinaryData, content.StringData} {
		for key := range data {
			keys = append(keys, key)
		}
	}
	return keys
}
