package tree

import "encoding/base64"

// withTrueBytes prepares a Secret for comparison by its true bytes: what
// stringData says is in data, as it will be for the API server, and data is
// decoded, so that two spellings of one value are equal. A malformed value stays
// as it is; the mask hides it all the same.
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

// entries returns an object, an empty one where there is none.
func entries(value any) (map[string]any, bool) {
	if value == nil {
		return nil, true
	}
	object, ok := value.(map[string]any)
	return object, ok
}
