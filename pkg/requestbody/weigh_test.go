package requestbody

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// allocated returns the number of bytes that f allocates, garbage included.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestWeigh: bodies designed to take much memory take little more than their weight.
func TestWeigh(t *testing.T) {
	const bytes = 1 << 19
	jsons := map[string]string{
		"EmptyObjects": `{}`, "EmptyLists": `[]`, "Objects": `{"a":1}`, "Nested": `{"a":{"a":{}}}`, "Lists": `[[]]`, "Numbers": `1`,
		"Floats": `1.5`, "Strings": `""`, "Nulls": `null`, "Text": `"` + strings.Repeat("text ", 100) + `"`, "Escapes": `"\u0001"`,
	}
	const slack = 1.25
	for name, unit := range jsons {
		t.Run("JSON/"+name, func(t *testing.T) {
			body := []byte(`{"x":[` + strings.Repeat(unit+",", bytes/(len(unit)+1)) + unit + `]}`)
			charged := weighJSON(body)
			if got := allocated(func() { decodeJSON(body) }); float64(got) > slack*float64(charged) {
				t.Errorf("%d bytes take %d, and are charged %d", len(body), got, charged)
			}
		})
	}
	yamls := map[string]string{
		"Dashes": "-\n", "Items": "- 1\n", "Inner": "- - - 1\n", "Objects": "- {a: b}\n", "Flow": "- [a,b,c,d,{},{},[]]\n", "Lines": "- a: b\n  c: d\n",
	}
	const yamlSlack = 1.6
	for name, unit := range yamls {
		t.Run("YAML/"+name, func(t *testing.T) {
			body := []byte("x:\n" + strings.Repeat(unit, bytes/len(unit)))
			charged := weighYAML(body)
			got := allocated(func() {
				if _, err := yaml.YAMLToJSONStrict(body); err != nil {
					t.Error(err)
				}
			})
			if float64(got) > yamlSlack*float64(charged) {
				t.Errorf("%d bytes take %d, and are charged %d", len(body), got, charged)
			}
		})
	}
}

// bomb returns a short YAML text whose aliases expand to a long text.
func bomb(text, uses int) string {
	return "a: &a " + strings.Repeat("x", text) + "\nb: [" + strings.Repeat("*a,", uses) + "1]\n"
}

func laughs(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 ha\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	return b.String()
}

func TestCheckAliases(t *testing.T) {
	utf16 := []byte{0xff, 0xfe}
	for _, c := range []byte(bomb(8000, 8000)) {
		utf16 = append(utf16, c, 0)
	}
	for name, tc := range map[string]struct {
		reason  string
		text    string
		refused bool
	}{
		"None":     {"YAML as people write it", "a: b\nc: [d, e]\n", false},
		"Few":      {"labels that are written once", "labels: &labels {app: x, team: y}\nselector: *labels\nother: *labels\n", false},
		"Merge":    {"so are these", "base: &base {a: b}\nmore:\n  <<: *base\n  c: d\n", false},
		"Script":   {"shell and C are no aliases", "script: |\n  cmd &pid; kill *pid\n  x = &y; *y = 1\n" + strings.Repeat("  *y = 1\n", 30000), false},
		"Bomb":     {"a long text again and again", bomb(8000, 8000), true},
		"Laughs":   {"lists of lists", laughs(20), true},
		"ManyName": {"more names than are remembered", strings.Repeat("# &n1 &n2 &n3\n", 10) + manyAnchors(2000) + bomb(8000, 8000), true},
		"UTF16":    {"YAML may be written in it", string(utf16), true},
		"Cycle":    {"without end", "a: &a [*a]\n", true},
		"NoYAML":   {"nobody could read it", "a: &a [\nb: *a", true},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(tc.text)
			var err error
			used := allocated(func() { err = checkAliases(text) })
			if (err != nil) != tc.refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if limit := int64(len(text))*100 + 1<<20; used > limit {
				t.Errorf("looking at %d bytes took %d, want %d at most", len(text), used, limit)
			}
		})
	}
}

func manyAnchors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: &k%d 1\n", i, i)
	}
	return b.String()
}
