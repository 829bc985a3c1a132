package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFiles checks the served files and their compressed sizes.
func TestFiles(t *testing.T) {
	files, err := New(Provider{})
	if err != nil {
		t.Fatal(err)
	}
	sizes, count := map[string]int{}, 0
	for name, one := range files.all {
		kind := path.Ext(name)
		if strings.HasPrefix(name, "/vendor/") && kind == ".js" {
			kind = "vendor"
		}
		sizes[kind] += len(one.zip)
		if kind == ".js" || kind == "vendor" || kind == ".css" {
			count++
		}
		if kind == ".ts" {
			t.Errorf("%s is for checks, and is shipped", name)
		}
	}
	for kind, most := range map[string]int{"vendor": 14 << 10, ".js": 60 << 10, ".css": 10 << 10} {
		if sizes[kind] == 0 || sizes[kind] > most {
			t.Errorf("%s: %d bytes compressed, want at most %d", kind, sizes[kind], most)
		}
	}
	if count > 40 {
		t.Errorf("%d files, want at most 40", count)
	}
	t.Logf("compressed: %v bytes in %d files", sizes, count)
}

// TestWithoutComments: comments do not reach browsers; all other text does.
func TestWithoutComments(t *testing.T) {
	source := "// Head.\nimport { a } from \"./a.js\";\n/** @type {string}\n * more */\nconst at = /** @type {any} */ (a); // ends\n  // alone\n  const to = `http://${at}`;\n"
	want := "\nimport { a } from \"./a.js\";\n\n\nconst at =  (a); // ends\n\n  const to = `http://${at}`;\n"
	if got := string(withoutComments([]byte(source))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPage: the page names all modules, so that browsers fetch them at once. It has nothing that
// the content policy refuses.
func TestPage(t *testing.T) {
	files, err := New(Provider{})
	if err != nil {
		t.Fatal(err)
	}
	page := string(files.all["/"].plain)
	for name := range files.all {
		if path.Ext(name) == ".js" && !strings.Contains(page, `<link rel="modulepreload" href="`+name+`">`) {
			t.Errorf("the page does not name %s", name)
		}
	}
	for _, forbidden := range []string{"<script>", "style=", "onclick", "http:", "https:"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %s", forbidden)
		}
	}
}

// TestProvider: the page has the values of the identity provider, escaped.
func TestProvider(t *testing.T) {
	files, err := New(Provider{Issuer: "https://id.example.com/a", ClientID: `"><script>alert(1)</script>`, Scopes: []string{"groups", "email"}})
	if err != nil {
		t.Fatal(err)
	}
	page := string(files.all["/"].plain)
	for _, want := range []string{`<meta name="oidc-issuer" content="https://id.example.com/a">`, `<meta name="oidc-client-id" content="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;">`, `<meta name="oidc-scope" content="openid groups email">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
}

// TestPlaces: only the paths of screens return the page.
func TestPlaces(t *testing.T) {
	files, err := New(Provider{})
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("app/main.js")
	if err != nil {
		t.Fatal(err)
	}
	var screens []string
	for _, found := range regexp.MustCompile(`(?m)^  \[(?:/\^#\\|new RegExp\(.\^#)/([a-z]+)`).FindAllStringSubmatch(string(main), -1) {
		screens = append(screens, found[1])
	}
	slices.Sort(screens)
	if screens = slices.Compact(screens); !slices.Equal(screens, places()) {
		t.Errorf("main.js has the screens %q, and links may lead to %q", screens, places())
	}
	for path, want := range map[string]int{"/x/shop": http.StatusOK, "/diff/shop-1..shop-2": http.StatusOK, "/timeline": http.StatusOK, "/app/none.js": http.StatusNotFound, "/xx/shop": http.StatusNotFound, "/favicon.ico": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		files.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != want || want == http.StatusOK && answer.Body.String() != string(files.all["/"].plain) {
			t.Errorf("%s: %d, want %d", path, answer.Code, want)
		}
	}
}

// TestServed: a browser gets an unchanged file only once. A browser that accepts gzip gets fewer
// bytes.
func TestServed(t *testing.T) {
	files, err := New(Provider{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(header ...string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, "/app/main.js", nil)
		for i := 0; i+1 < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		files.ServeHTTP(answer, request)
		return answer
	}
	plain := ask()
	if plain.Code != http.StatusOK || !strings.HasPrefix(plain.Header().Get("Content-Type"), "text/javascript") || plain.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v", plain.Code, plain.Header())
	}
	if zipped := ask("Accept-Encoding", "gzip"); zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Body.Len() >= plain.Body.Len() {
		t.Errorf("compressed: %v, %d bytes of %d", zipped.Header(), zipped.Body.Len(), plain.Body.Len())
	}
	if again := ask("If-None-Match", plain.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("the second time: %d", again.Code)
	}
}
