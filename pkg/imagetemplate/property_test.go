package imagetemplate

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// seeds returns templates, and similar texts.
func seeds() []string {
	return []string{
		"quay.io/x:v{kube_minor_version}", "quay.io/sample/catalog:" + sample, "x{group:broken}/" + sample, "{{kube_major_version}}", "{", "}", "{}", "",
		`q:{group:g.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.items[?(@.x=="}}")].y}}`, "{group:,version:,kind:,name:,namespace:,jsonpath:{}}", "a\x00{kube_patch_version}\n",
		"{group:g,version:v1,kind:K,name:n,namespace:s,jsonpath:{range", "{group:g,version:v1,kind:K,name:n,namespace:s,jsonpath:{'\\'}}",
	}
}

// holds checks the properties of every text and every value.
func holds(t *testing.T, text, value string) {
	t.Helper()
	parsed := Parse(text)
	if len(text) <= MaxLength {
		var whole strings.Builder
		for _, p := range parsed.parts {
			if whole.WriteString(p.text); p.variable != nil {
				whole.WriteString(p.variable.Text)
				if again := Parse(p.variable.Text); again.Problem != nil || len(again.parts) != 1 {
					t.Errorf("%q: variable %q is none by itself", text, p.variable.Text)
				}
			}
		}
		if whole.String() != text {
			t.Errorf("%q: its parts are %q", text, whole.String())
		}
	}
	asked := 0
	result := parsed.Resolve(func(Variable) string { asked++; return value })
	if asked > MaxVariables {
		t.Errorf("%q: %d values were asked for", text, asked)
	}
	if again := Parse(text).Resolve(func(Variable) string { return value }); again.Image != result.Image {
		t.Errorf("%q is %q, and %q the next time", text, result.Image, again.Image)
	}
	switch {
	case result.Image == "":
		if len(result.Unresolved) == 0 && !result.Malformed {
			t.Errorf("%q: there is neither an image nor a reason", text)
		}
	case len(result.Unresolved) > 0 || result.Malformed || parsed.Problem != nil:
		t.Errorf("%q: there is an image, and %+v", text, result)
	default:
		if _, err := reference.ParseNormalizedNamed(result.Image); err != nil || strings.ContainsAny(result.Image, "{}") {
			t.Errorf("%q is %q, which is no reference: %v", text, result.Image, err)
		}
	}
}

// TestProperties checks texts that are put together from pieces of templates.
func TestProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2021))
	pieces := []string{
		"quay.io/", "x", ":v", "@", "{", "}", "{kube_major_version}", "{kube_minor_version}", "{kube_", sample, "{group:", "foo.example.com", ",version:", "v1", ",kind:", "Sample", ",name:", "n",
		",namespace:", "ns", ",jsonpath:", "{.a}", "}}", "'", `"`, `\`, " ", ",", ".", "/", "[?(@.x==\"}\")]",
	}
	for range 20000 {
		var text strings.Builder
		for range random.IntN(24) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		holds(t, text.String(), []string{"", "1", "v2", "{kube_minor_version}", "a/b"}[random.IntN(5)])
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range seeds() {
		f.Add(text, "v2")
		f.Add(text, "{kube_minor_version}")
	}
	f.Fuzz(holds)
}
