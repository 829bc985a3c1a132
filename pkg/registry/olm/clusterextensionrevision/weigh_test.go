package clusterextensionrevision

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/requestbody"
)

// allocated returns how many bytes f allocates, garbage included.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestWeigh: bodies made to take much memory take hardly more than what they are
// charged.
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

// bomb is YAML that is short and stands for much.
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

// TestBodiesThatGrow: what is short and takes much memory gets no further than
// here, whatever it is for.
func TestBodiesThatGrow(t *testing.T) {
	const limit = 64 << 20
	objects := `{"x":[` + strings.Repeat(`{"a":1},`, 1<<20) + `1]}`
	inString := `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"[` + strings.Repeat(`{},`, 3<<20) + `1]"}}}`
	status := func(req *http.Request) *http.Request { return forSubresource(req, "status") }
	for name, tc := range map[string]struct {
		reason string
		req    *http.Request
		code   int
		most   int64
	}{
		"Aliases":       {"34 KiB must not become 90 MiB", requestFor("POST", "create", "", "application/yaml", bomb(8000, 8000)), http.StatusBadRequest, 4 << 20},
		"AliasesApply":  {"nor in a patch", requestFor("PATCH", "patch", "e-1", "application/apply-patch+yaml", bomb(8000, 8000)), http.StatusBadRequest, 4 << 20},
		"AliasesStatus": {"nor of a subresource", status(requestFor("PATCH", "patch", "e-1", "application/apply-patch+yaml", bomb(8000, 8000))), http.StatusBadRequest, 4 << 20},
		"Objects":       {"small objects take fifty times their text", requestFor("POST", "create", "", "application/json", objects), http.StatusRequestEntityTooLarge, 16 << 20},
		"Patch":         {"also in a JSON patch", requestFor("PATCH", "patch", "e-1", "application/json-patch+json", objects), http.StatusRequestEntityTooLarge, 16 << 20},
		"Status":        {"also of a subresource", status(requestFor("PUT", "update", "e-1", "application/json", objects)), http.StatusRequestEntityTooLarge, 16 << 20},
		"InString":      {"what kubectl remembers is decoded too; the buffer grows as it comes", requestFor("POST", "create", "", "application/json", inString), http.StatusRequestEntityTooLarge, 24 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			budget := requestbody.NewBudget(64 << 20)
			var got received
			handler := filterFor(budget, limit, &got)
			answer := httptest.NewRecorder()
			used := allocated(func() { handler.ServeHTTP(answer, tc.req) })
			if answer.Code != tc.code || got.body != "" {
				t.Errorf("%s: status %d, want %d; the endpoint got %d bytes", tc.reason, answer.Code, tc.code, len(got.body))
			}
			if used > tc.most {
				t.Errorf("%s: refusing it took %d bytes, want %d at most", tc.reason, used, tc.most)
			}
			if err := budget.Share("nobody").Set(64 << 20); err != nil {
				t.Errorf("%s: it kept its share of the budget: %v", tc.reason, err)
			}
		})
	}
}

// TestLargeRevisionsPass: the largest revision that there may be fits into the
// default budget, also as client-side kubectl apply sends it.
func TestLargeRevisionsPass(t *testing.T) {
	entry := `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d","namespace":"d","labels":{"app":"x"}},"data":{"a":"1","b":"2","text":"%s"}}}`
	var entries []string
	for i := range v1alpha1.MaxObjects {
		entries = append(entries, fmt.Sprintf(entry, i, strings.Repeat("x", v1alpha1.MaxManifestBytes/v1alpha1.MaxObjects-150)))
	}
	body := `{"spec":{"phases":[{"name":"p","objects":[` + strings.Join(entries, ",") + `]}]}`
	again := strings.ReplaceAll(body, `"`, `\"`) + "}"
	for name, text := range map[string]string{
		"Once":  body + "}",
		"Twice": body + `,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + again + `"}}}`,
	} {
		var got received
		answer := httptest.NewRecorder()
		filterFor(requestbody.NewBudget(requestbody.DefaultBudget), 64<<20, &got).ServeHTTP(answer, requestFor("POST", "create", "", "application/json", text))
		if answer.Code != http.StatusOK || len(got.staged) != len(entries) {
			t.Errorf("%s: %d bytes: status %d, %d manifests of %d: %.200s", name, len(text), answer.Code, len(got.staged), len(entries), answer.Body)
		}
	}
}
