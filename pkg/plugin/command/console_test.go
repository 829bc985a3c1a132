package command

import (
	"os"
	"strings"
	"testing"
)

// TestPlaceOf: a foreign link opens a page of the console. It cannot inject content into the local
// page that holds the key.
func TestPlaceOf(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for link, want := range map[string]string{
		"https://penstock.example.com/#/x/argocd":             "/x/argocd",
		"#/plan/swap/a%2Fb":                                   "/plan/swap/a%2Fb",
		`https://p/#/x/"><script src=//evil.test/a></script>`: "/x/%22%3E%3Cscript%20src=//evil.test/a%3E%3C/script%3E",
		"https://p/#/x/%22%3E%3Cscript%3E":                    "/x/%22%3E%3Cscript%3E",
		"https://penstock.example.com/":                       "",
		"https://penstock.example.com/x/argocd":               "/x/argocd",
		`https://p/timeline?who="><script>&what=Repaired`:     "/timeline?what=Repaired&who=%22%3E%3Cscript%3E",
		`https://p/x/"><script src=//evil.test/a></script>`:   "/x/%22%3E%3Cscript%20src=//evil.test/a%3E%3C/script%3E",
		"javascript:alert(1)":                                 "",
	} {
		place, err := placeOf(link)
		if place != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", link, place, err, want)
		}
		file, err := pageTo("http://127.0.0.1:1/#key=k&at=" + place + `"><script>`)
		if err != nil {
			t.Fatal(err)
		}
		if page, err := os.ReadFile(file); err != nil || strings.Contains(string(page), "<script") {
			t.Errorf("%s: %s %v", link, page, err)
		}
	}
}
