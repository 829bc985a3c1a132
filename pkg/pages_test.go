package fences

import (
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestStructure checks that the packages in docs/reference/structure.md exist, and that it names
// each folder of pkg.
func TestStructure(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/structure.md")
	if err != nil {
		t.Fatal(err)
	}
	all := packages(t)
	for _, named := range regexp.MustCompile("`(pkg/[a-z0-9/]+)`").FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(pkg string) bool { return in(named[1], pkg) }) {
			t.Errorf("there is no package %s", named[1])
		}
	}
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.IsDir() && !strings.Contains(string(text), "`pkg/"+folder.Name()) {
			t.Errorf("the page does not name pkg/%s", folder.Name())
		}
	}
}

// TestLinks: the target of each link within the repository exists, with the heading that the link
// names; and a page of docs links to each other one.
func TestLinks(t *testing.T) {
	root := ".."
	headings, linked := map[string]map[string]bool{}, map[string]bool{"README.md": true}
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linksOf(string(text)) {
			target, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %q is no link: %v", page, link, err)
				continue
			}
			if target.Scheme != "" || target.Host != "" {
				continue // elsewhere in the world
			}
			to := page
			if target.Path != "" {
				to = path.Join(path.Dir(page), target.Path)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link)
				continue
			}
			linked[to] = linked[to] || to != page
			if target.Fragment == "" || path.Ext(to) != ".md" {
				continue
			}
			if headings[to] == nil {
				headings[to] = headingsOf(t, filepath.Join(root, to))
			}
			if !headings[to][target.Fragment] {
				t.Errorf("%s links to %s, and %s has no such heading", page, link, to)
			}
		}
	}
	for _, page := range pages(t, root) {
		if in("docs", page) && path.Dir(page) != "docs/operations/runbooks" && !linked[page] {
			t.Errorf("no page links to %s", page)
		}
	}
}

// TestNamedTests checks that every test that a page names with its file exists.
func TestNamedTests(t *testing.T) {
	root, named := "..", regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)(?:/([^`]+))?`")
	found := 0
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range named.FindAllStringSubmatch(string(text), -1) {
			exists(t, root, page, test[1], test[2], test[3])
			found++
		}
	}
	if found < 100 {
		t.Errorf("pages name %d tests with their files", found)
	}
}

func pages(t *testing.T, root string) []string {
	t.Helper()
	found := []string{"README.md"}
	for _, top := range []string{"docs", "artifacts", "test", "hack"} {
		err := fs.WalkDir(os.DirFS(root), top, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case path.Ext(file) == ".md":
				found = append(found, file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d pages: the root is wrong", len(found))
	}
	return found
}

func linksOf(text string) []string {
	var links []string
	for _, m := range regexp.MustCompile(`\]\(([^()\s]+)\)`).FindAllStringSubmatch(withoutCode(text), -1) {
		links = append(links, m[1])
	}
	return links
}

func withoutCode(text string) string {
	var lines []string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(line, "    "):
			lines = append(lines, line)
		}
	}
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllStringFunc(strings.Join(lines, "\n"), func(code string) string {
		// The text of a link may be code; its target is not.
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("[]()", r) {
				return '_'
			}
			return r
		}, code)
	})
}

// headingsOf returns the anchors of a page's headings, as GitHub creates them.
func headingsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	fenced := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if heading := strings.TrimLeft(line, "#"); !fenced && strings.HasPrefix(line, "#") && strings.HasPrefix(heading, " ") {
			anchors[anchorOf(heading)] = true
		}
	}
	return anchors
}

// anchorOf is the name by which a link finds a heading: letters, digits, - and _ in lower
// case, with - for spaces.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(heading))
}

// The finders have to find, or the tests above prove nothing.
func TestLinksOf(t *testing.T) {
	got := strings.Join(linksOf("See [`a`](b.md#c), [d](e).\n\n```\n[x](y)\n```\n\n    [x](y)\n\nand `[x](y)`.\n"), " ")
	if got != "b.md#c e" {
		t.Errorf("links %q", got)
	}
	if got := anchorOf(" 1. Who may `use` it? "); got != "1-who-may-use-it" {
		t.Errorf("anchor %q", got)
	}
}
