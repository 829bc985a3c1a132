package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// This package writes the canonical form itself, because digests outlive Go releases: encoding/json
// changed its escapes of \b and \f in Go 1.22. The form is RFC 8785 with two differences: keys are
// sorted by their bytes, and 64-bit integers are kept exactly. (Larger integers are floats, as in
// the API server.)
//
// The format is frozen. A change would give every stored manifest another digest.

// decodeJSON decodes a JSON object like the API server: integers stay integers, and keys are
// case-sensitive. Unlike the API server, it refuses duplicate keys and invalid UTF-8: the API
// server would silently apply another content than was reviewed.
func decodeJSON(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("parsing JSON: not valid UTF-8")
	}
	var object map[string]any
	duplicates, err := kjson.UnmarshalStrict(data, &object, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	if len(duplicates) > 0 {
		return nil, fmt.Errorf("parsing JSON: %w", duplicates[0])
	}
	if object == nil {
		return nil, fmt.Errorf("parsing JSON: found null, want an object")
	}
	return object, nil
}

// appendCanonical appends the canonical JSON of a value as decoded by encoding/json or a YAML
// decoder.
func appendCanonical(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case string:
		return appendString(out, v)
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case float64:
		return appendFloat(out, v)
	case map[string]any:
		return appendMap(out, v)
	case []any:
		return appendSlice(out, v)
	default:
		return appendOther(out, value)
	}
}

func appendMap(out []byte, object map[string]any) ([]byte, error) {
	out = append(out, '{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendString(out, key); err != nil {
			return nil, err
		}
		out = append(out, ':')
		if out, err = appendCanonical(out, object[key]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendSlice(out []byte, list []any) ([]byte, error) {
	out = append(out, '[')
	for i, element := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendCanonical(out, element); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// appendOther converts types that no JSON decoder returns (int, uint64, json.Number,
// map[string]string, structs) to the decoder's form, so that equal contents have equal digests.
func appendOther(out []byte, value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a value of type %T: %w", value, err)
	}
	var decoded any
	decoder := kjson.NewDecoderCaseSensitivePreserveInts(bytes.NewReader(encoded))
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("reading back a value of type %T: %w", value, err)
	}
	return appendCanonical(out, decoded)
}

// appendFloat appends the shortest decimal that parses as f. 1.0, 1e0 and 1 are written alike,
// because they are equal for the API server.
func appendFloat(out []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("number %v: JSON has no such number", f)
	}
	magnitude := math.Abs(f)
	if magnitude == 0 {
		// Negative zero parses as the integer 0.
		return append(out, '0'), nil
	}
	if magnitude >= 1e-6 && magnitude < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64), nil
	}
	// strconv pads the exponent to two digits, RFC 8785 does not: 1e-07, 1e-7.
	text := strconv.FormatFloat(f, 'e', -1, 64)
	text = strings.Replace(text, "e-0", "e-", 1)
	return append(out, text...), nil
}

func appendString(out []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("string %q is not valid UTF-8", s)
	}
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		case c == '\b':
			out = append(out, `\b`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\f':
			out = append(out, `\f`...)
		case c == '\r':
			out = append(out, `\r`...)
		default:
			out = append(out, `\u00`...)
			out = append(out, hex[c>>4], hex[c&0xf])
		}
	}
	return append(out, '"'), nil
}
