package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// promises are pages whose rows name the tests that show what they say, and how many
// they name at least.
func promises() map[string]int {
	return map[string]int{"docs/reference/engine-conformance.md": 40, "docs/reference/clusterextension-conformance.md": 60, "docs/reference/pitfalls.md": 40, "docs/operations/failure-modes.md": 20}
}

// TestPromises: every test that a page names exists, so that it cannot promise more
// than there is, and every row names one or says that there is none.
func TestPromises(t *testing.T) {
	root := ".."
	for page, least := range promises() {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(string(text), -1)
		if len(named) < least {
			t.Errorf("%s names only %d tests", page, len(named))
		}
		for _, m := range named {
			exists(t, root, page, m[1], m[2], m[3])
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if isRow(line) && !slices.ContainsFunc([]string{"`", "missing", "does not apply", "*Decision*", "*not tested*"}, func(says string) bool { return strings.Contains(line, says) }) {
				t.Errorf("%s: the row says neither a test nor that there is none: %s", page, line)
			}
		}
	}
}

// exists fails unless the folder of a file has the test, and the file the last part of
// its row: subtests are rows of tables, and a suite has tables in several files.
func exists(t *testing.T, root, page, file, test, row string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Errorf("%s names a file that is not there: %v", page, err)
		return
	}
	beside := testsOf(t, filepath.Join(root, filepath.Dir(file)))
	if !strings.Contains(beside, "func "+test+"(") {
		t.Errorf("%s: there is no test %s beside %s", page, test, file)
	}
	if row == "" {
		return
	}
	parts := strings.Split(row, "/")
	for i, part := range parts {
		text := beside
		if i == len(parts)-1 {
			text = string(source)
		}
		if !strings.Contains(text, `"`+part+`"`) {
			t.Errorf("%s: %s has no row %s of %s", page, file, row, test)
		}
	}
}

// testsOf is the text of all tests of a folder.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// isRow tells whether a line of a page is a row of a table, and not its head.
func isRow(line string) bool {
	return strings.HasPrefix(line, "| ") && !strings.Contains(line, "| test |")
}

// TestPitfalls: the page speaks of each of the forty, once.
func TestPitfalls(t *testing.T) {
	eachOnce(t, "docs/reference/pitfalls.md", 40)
}

// TestScenarios: the page speaks of each scenario of OLM v1, once, and of what those leave out.
func TestScenarios(t *testing.T) {
	const page, leftOut = "docs/reference/clusterextension-conformance.md", "## What OLM v1 does not cover"
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	numbered, besides, found := strings.Cut(string(text), leftOut)
	if !found {
		t.Fatalf("%s has no part %q", page, leftOut)
	}
	numberedOnce(t, page, numbered, 64)
	rows := 0
	for line := range strings.SplitSeq(besides, "\n") {
		if isRow(line) {
			rows++
		}
	}
	if rows < 11 {
		t.Errorf("%s has %d rows of what OLM v1 does not cover, want 11 at least", page, rows)
	}
}

// eachOnce fails unless the rows of a page have the numbers from 1, each once.
func eachOnce(t *testing.T, page string, last int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	numberedOnce(t, page, string(text), last)
}

func numberedOnce(t *testing.T, page, text string, last int) {
	t.Helper()
	rows := map[int]int{}
	for line := range strings.SplitSeq(text, "\n") {
		if !isRow(line) {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(strings.Split(line, "|")[1]))
		if err != nil {
			t.Errorf("%s: a row has no number: %s", page, line)
		}
		rows[number]++
	}
	for n := 1; n <= last; n++ {
		if rows[n] != 1 {
			t.Errorf("%s: number %d has %d rows", page, n, rows[n])
		}
	}
	if len(rows) != last {
		t.Errorf("%s: %d numbers, want %d", page, len(rows), last)
	}
}
