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
	// otherForm is an encoding that the endpoint refuses.
	otherForm Form = iota
	jsonForm
	yamlForm
	// jsonPatchForm is a list of operations, whose values have a meaning only after they are
	// applied.
	jsonPatchForm
)

// FormOf returns the encoding of a body with a content type, sent with an HTTP method.
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

// Weigh returns the approximate memory, in bytes, that the endpoint needs to decode a body.
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

// Decode returns a body as a tree. It returns nil if the endpoint must read the body itself (see
// decodeJSON). The error is the answer for a body that would take too much memory.
func (f Form) Decode(body []byte, share *Share) (map[string]any, error) {
	if err := share.Set(weighJSON(body)); err != nil {
		return nil, err
	}
	if f != jsonForm && f != yamlForm {
		return nil, nil
	}
	// Most YAML bodies are JSON, and reading them as JSON is ten times faster.
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
		// The endpoint reports the syntax error itself.
		return nil, nil
	}
	if err := share.Set(weighYAML(body) + weighJSON(converted)); err != nil {
		return nil, err
	}
	return decodeJSON(converted), nil
}

// DecodeLoosely works like Decode, for a body with mistakes that the endpoint may accept. The last
// value of a duplicate field counts, as in the endpoint. DecodeLoosely returns nil for an
// unreadable body.
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

// DecodePatch returns the operations of a JSON patch, or nil for a body in another form.
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

// decodeJSON returns the body as a tree. It returns nil if the body has duplicate fields or invalid
// UTF-8: decoding would drop them and so hide them from the endpoint's checks.
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
