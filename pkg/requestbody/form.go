package requestbody

import (
	"mime"
	"net/http"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Form is the encoding of a body.
type Form int

const (
	// otherForm is a form that the endpoint refuses.
	otherForm Form = iota
	jsonForm
	yamlForm
	// jsonPatchForm is a list of operations whose values only make sense when
	// they are applied.
	jsonPatchForm
)

// FormOf returns the form in which the endpoint of a method reads a body.
func FormOf(contentType, method string) Form {
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

// Weigh returns about how much memory the endpoint takes to decode a body.
func (f Form) Weigh(body []byte) int64 {
	if f == yamlForm {
		return weighYAML(body)
	}
	return weighJSON(body)
}

// Check refuses a body whose memory Weigh cannot predict.
func (f Form) Check(body []byte) error {
	if f == yamlForm {
		return checkAliases(body)
	}
	return nil
}

// Decode returns a body as a tree, or nil if it is left to the endpoint (see decodeJSON). The error
// is the answer for a body that would take too much memory.
func (f Form) Decode(body []byte, share *Share) (map[string]any, error) {
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

// DecodeLoosely is Decode for a body with mistakes that the endpoint may accept: of a duplicate
// field the last value counts, as in the endpoint. It returns nil for an unreadable body.
func (f Form) DecodeLoosely(body []byte) map[string]any {
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

// DecodePatch returns the operations of a JSON patch, or nil for another body.
func (f Form) DecodePatch(body []byte) []map[string]any {
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
