package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalJSON(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"Keys": {
			reason: "keys are sorted by their bytes at every depth, and space is dropped",
			in:     "{ \"b\" : {\"z\":1, \"Z\":2},\n \"a\": [ {\"y\":1,\"x\":2} ] }",
			want:   `{"a":[{"x":2,"y":1}],"b":{"Z":2,"z":1}}`,
		},
		"Integers": {
			reason: "integers of 64 bits are exact, beyond the 53 bits of a float",
			in:     `{"a":9223372036854775807,"b":-9223372036854775808,"c":9007199254740993}`,
			want:   `{"a":9223372036854775807,"b":-9223372036854775808,"c":9007199254740993}`,
		},
		"Floats": {
			reason: "spellings of one number are one content",
			in:     `{"a":1.0,"b":1e3,"c":0.50,"d":-0.0,"e":1e-7,"f":1E+30,"g":18446744073709551615}`,
			want:   `{"a":1,"b":1000,"c":0.5,"d":0,"e":1e-7,"f":1e+30,"g":18446744073709552000}`,
		},
		"Strings": {
			reason: "only what JSON demands is escaped, HTML is not",
			in:     `{"a":"<&>\u003c\u2028\/","b":"\u0000\u0008\u001f\t\n\f\r\"\\","c":"\u00e9\ud83d\ude00"}`,
			want:   "{\"a\":\"<&><\u2028/\",\"b\":\"\\u0000\\b\\u001f\\t\\n\\f\\r\\\"\\\\\",\"c\":\"é😀\"}",
		},
		"Literals": {
			reason: "null outside of metadata is what somebody wrote",
			in:     `{"a":null,"b":true,"c":false,"d":{},"e":[],"f":""}`,
			want:   `{"a":null,"b":true,"c":false,"d":{},"e":[],"f":""}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := decodeJSON([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := appendCanonical(nil, object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !json.Valid(got) {
				t.Errorf("not JSON: %s", got)
			}
			again, err := decodeJSON(got)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := appendCanonical(nil, again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), string(twice)); diff != "" {
				t.Errorf("canonical form of canonical form: -once, +twice:\n%s", diff)
			}
		})
	}
}

func TestCanonicalOfGoTypes(t *testing.T) {
	type embedded struct {
		B string `json:"b"`
		A int    `json:"a"`
	}
	object := map[string]any{
		"int": 7, "uint64": uint64(1 << 63), "float32": float32(0.5), "number": json.Number("1e2"),
		"strings": []string{"x"}, "map": map[string]string{"k": "v"}, "struct": embedded{B: "<", A: 1},
	}
	want := `{"float32":0.5,"int":7,"map":{"k":"v"},"number":100,"strings":["x"],"struct":{"a":1,"b":"<"},"uint64":9223372036854776000}`
	got, err := appendCanonical(nil, object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("types that no decoder makes are encoded as if read back: -want, +got:\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	cases := map[string]struct{ reason, in string }{
		"Duplicate":       {"one of the two would be dropped unseen", `{"a":{"b":1,"b":2}}`},
		"InvalidUTF8":     {"it would be replaced unseen", "{\"a\":\"\xff\"}"},
		"Trailing":        {"the rest would be dropped unseen", `{} {}`},
		"Null":            {"it is no object", `null`},
		"List":            {"it is no object", `[]`},
		"Empty":           {"it is no JSON", ``},
		"NumberTooLarge":  {"no float holds it", `{"a":1e999}`},
		"CommentsAreYAML": {"it is no JSON", "# x\n{}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if object, err := decodeJSON([]byte(tc.in)); err == nil {
				t.Errorf("%s: got %v, want an error", tc.reason, object)
			}
		})
	}
}
