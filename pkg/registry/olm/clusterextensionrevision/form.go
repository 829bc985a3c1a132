package clusterextensionrevision

import (
	"mime"
	"net/http"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/registry/requestbody"
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
func (f form) decode(body []byte, share *requestbody.Share) (map[string]any, error) {
	if err := share.Set(weighJSON(body)); err != nil {
		return nil, err
	}
	if f != jsonForm && f != yamlForm {
		return nil, nil
	}
	// Most clients send JSON as YAML, which is read ten times faster as what it
	// is.
	tree := decodeJSON(body)
	if tree != nil || f == jsonForm {
		return tree, nil
	}
	if err := share.Set(weighYAML(body)); err != nil {
		return nil, err
	}
	if err := checkAliases(body); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		// The endpoint says so in its own words.
		return nil, nil
	}
	if err := share.Set(weighYAML(body) + weighJSON(converted)); err != nil {
		return nil, err
	}
	return decodeJSON(converted), nil
}

// decodeLoosely is decode for a body with mistakes that the endpoint may forgive:
// of a field that is there twice the last one counts, as it does there. It returns
// nil for what cannot be read at all.
func (f form) decodeLoosely(body []byte) map[string]any {
	text := body
	switch f {
	case jsonForm:
	case yamlForm:
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil
		}
		text = converted
	default:
		return nil
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil {
		return nil
	}
	return tree
}

// decodePatch returns the operations of a JSON patch, nil for what is none.
func (f form) decodePatch(body []byte) []map[string]any {
	if f != jsonPatchForm {
		return nil
	}
	var operations []map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &operations); err != nil {
		return nil
	}
	return operations
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
