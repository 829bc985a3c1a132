package printable

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Plain":      {"what prints stays", "image: é", "image: é"},
		"Cursor":     {"escape sequences move the cursor", "\x1b[2J", `\u001b[2J`},
		"Direction":  {"text that is turned round hides what it says", "a\u202eb", `a\u202eb`},
		"Lines":      {"it is one line", "a\nb\tc", `a\nb\tc`},
		"Surrogates": {"as JSON escapes it", "\U000e0001", `\udb40\udc01`},
		"Long":       {"only the beginning", strings.Repeat("x", 300), strings.Repeat("x", 256) + "..."},
		"Broken":     {"no half of a character is left", strings.Repeat("x", 255) + "éé", strings.Repeat("x", 255) + "..."},
	} {
		if got := Line(tc.in); got != tc.want {
			t.Errorf("%s: %s: Line(%q) is %q, want %q", name, tc.reason, tc.in, got, tc.want)
		}
	}
}

// TestProperties: whatever the text is, what is written prints, and the quoted
// forms are read as the text.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for what, written := range map[string]string{"line": Line(s), "JSON": Quote(s), "YAML": QuoteYAML(s), "scalar": Scalar(s)} {
			if !Is(strings.ReplaceAll(written, "\ufffd", "")) {
				t.Fatalf("%s of %q does not print: %q", what, s, written)
			}
		}
		var ofJSON, ofYAML string
		if err := json.Unmarshal([]byte(Quote(s)), &ofJSON); err != nil || ofJSON != s {
			t.Fatalf("%s is read as %q (%v), want %q", Quote(s), ofJSON, err, s)
		}
		if err := yaml.Unmarshal([]byte(QuoteYAML(s)), &ofYAML); err != nil || ofYAML != s {
			t.Fatalf("%s is read as %q (%v), want %q", QuoteYAML(s), ofYAML, err, s)
		}
	})
}

func TestScalar(t *testing.T) {
	for want, value := range map[string]any{"null": nil, "true": true, "1": int64(1), "0.5": 0.5, `"a"`: "a"} {
		if got := Scalar(value); got != want {
			t.Errorf("Scalar(%v) is %s, want %s", value, got, want)
		}
	}
}
