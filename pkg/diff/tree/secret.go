package tree

import "encoding/base64"

// withTrueBytes prepares a Secret for a comparison of its true bytes: it moves stringData to data
// and decodes data. A malformed value stays unchanged; the mask hides it too.
func withTrueBytes(object map[string]any) map[string]any {
	object = hideCopies(object, true)
	data, ok := entries(object["data"])
	if !ok {
		return object
	}
	plain, ok := entries(object["stringData"])
	if !ok {
		return object
	}
	merged := make(map[string]any, len(data)+len(plain))
	for key, value := range data {
		merged[key] = value
		if encoded, ok := value.(string); ok {
			if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
				merged[key] = secretBytes(decoded)
			}
		}
	}
	for key, value := range plain {
		merged[key] = value
		if s, ok := value.(string); ok {
			merged[key] = secretBytes(s)
		}
	}
	if len(merged) > 0 {
		object = with(object, "data", merged)
	}
	if object["stringData"] != nil {
		object = with(object, "stringData", nil)
	}
	return object
}

// entries returns value as an object; an empty object for null.
func entries(value any) (map[string]any, bool) {
	if value == nil {
		return nil, true
	}
	object, ok := value.(map[string]any)
	return object, ok
}
