package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

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

// TestProperties: the output is printable for every text, and the quoted forms decode to the text.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for what, written := range map[string]string{"line": Line(s), "JSON": Quote(s), "YAML": QuoteYAML(s), "scalar": Scalar(s)} {
			if strings.ContainsFunc(strings.ReplaceAll(written, "\ufffd", ""), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%s of %q does not print: %q", what, s, written)
			}
		}
		if literal := Literal(s); strings.HasPrefix(literal, `"`) && strings.Contains(literal, `\`) {
			var read string
			if err := json.Unmarshal([]byte(literal), &read); err != nil || read != s {
				t.Fatalf("%q is read as %q (%v), want %q", literal, read, err, s)
			}
		} else if literal != s {
			t.Fatalf("%q became %q, which nobody can tell from a text", s, literal)
		}
		if encoded, err := json.Marshal(map[string]string{"a": Literal(s)}); err != nil {
			t.Fatal(err)
		} else if _, err := yaml.JSONToYAML(encoded); err != nil {
			t.Fatalf("%q in JSON is no YAML: %v", s, err)
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

// TestMisleading: lookalike letters are escaped; normal text in any language is not.
func TestMisleading(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Cyrillic":     {"one letter in a Latin word", "\u0430dmin", `\u0430dmin`},
		"Image":        {"in a part of a name", "registry.example.com/ngin\u0445:1", `registry.example.com/ngin\u0445:1`},
		"Greek":        {"another script", "c\u03bfnfig", `c\u03bfnfig`},
		"Whole":        {"a word of nothing but lookalikes", "\u0440\u0430\u0443", `\u0440\u0430\u0443`},
		"Fullwidth":    {"a form of a Latin letter", "\uff41dmin", `\uff41dmin`},
		"Mathematical": {"another one, beyond the first plane", "\U0001d41admin", `\ud835\udc1admin`},
		"Russian":      {"a text", "Версия: да, а не нет", "Версия: да, а не нет"},
		"Beside":       {"words of two scripts", "kubectl ждёт ответа", "kubectl ждёт ответа"},
		"Japanese":     {"scripts that stand in one word", "Podを3個", "Podを3個"},
		"Latin":        {"accents", "Ærøskøbing é", "Ærøskøbing é"},
	} {
		if got := Line(tc.in); got != tc.want {
			t.Errorf("%s: %s: Line(%q) is %q, want %q", name, tc.reason, tc.in, got, tc.want)
		}
		if Is(tc.in) != (tc.in == tc.want) {
			t.Errorf("%s: Is(%q) is %t", name, tc.in, Is(tc.in))
		}
	}
}

func TestScalar(t *testing.T) {
	for want, value := range map[string]any{"null": nil, "true": true, "1": int64(1), "0.5": 0.5, `"a"`: "a"} {
		if got := Scalar(value); got != want {
			t.Errorf("Scalar(%v) is %s, want %s", value, got, want)
		}
	}
}
