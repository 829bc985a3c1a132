package clusterextensionrevision

import (
	"mime"
	"net/http"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// form is how a body is written.
type form int

const (
	// otherForm is what the endpoint refuses.
	otherForm form = iota
	jsonForm
	yamlForm
	// jsonPatchForm is a list of operations whose values only make sense when
	// they are applied.
	jsonPatchForm
)

// formOf tells in which form the endpoint of a method reads a body.
func formOf(contentType, method string) form {
	mediaType, _, err := mime.ParseMediaType(contentType)
	patch := method == http.MethodPatch
	if contentType == "" && !patch {
		return jsonForm
	}
	if err != nil {
		return otherForm
	}
	switch {
	case patch && mediaType == string(types.ApplyYAMLPatchType):
		return yamlForm
	case patch && (mediaType == string(types.MergePatchType) || mediaType == string(types.StrategicMergePatchType)):
		return jsonForm
	case patch && mediaType == string(types.JSONPatchType):
		return jsonPatchForm
	case !patch && mediaType == runtime.ContentTypeJSON:
		return jsonForm
	case !patch && mediaType == runtime.ContentTypeYAML:
		return yamlForm
	default:
		return otherForm
	}
}

// weigh returns about how much memory the endpoint takes to decode a body.
func (f form) weigh(body []byte) int64 {
	if f == yamlForm {
		return weighYAML(body)
	}
	return weighJSON(body)
}

// check refuses what weigh cannot tell.
func (f form) check(body []byte) error {
	if f == yamlForm {
		return checkAliases(body)
	}
	return nil
}

// decode returns a body as a tree, or nil when it is not for us (see decodeJSON).
// The error is the answer when that takes too much memory.
func (f form) decode(body []byte, share *share) (map[string]any, error) {
	if f != jsonForm && f != yamlForm {
		return nil, nil
	}
	if err := share.set(weighJSON(body)); err != nil {
		return nil, err
	}
	// Most clients send JSON as YAML, which is read ten times faster as what it
	// is.
	tree := decodeJSON(body)
	if tree != nil || f == jsonForm {
		return tree, nil
	}
	if err := share.set(weighYAML(body)); err != nil {
		return nil, err
	}
	if err := checkAliases(body); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		return nil, nil
	}
	if err := share.set(weighYAML(body) + weighJSON(converted)); err != nil {
		return nil, err
	}
	return decodeJSON(converted), nil
}

// decodeJSON returns the body as a tree, or nil when the endpoint should have a
// look at it itself: whatever is dropped or replaced in reading (duplicate
// fields, invalid UTF-8) must not be hidden from its checks.
func decodeJSON(body []byte) map[string]any {
	if !utf8.Valid(body) {
		return nil
	}
	var tree map[string]any
	duplicates, err := kjson.UnmarshalStrict(body, &tree, kjson.DisallowDuplicateFields)
	if err != nil || len(duplicates) > 0 {
		return nil
	}
	return tree
}
