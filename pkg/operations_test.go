package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOperations checks that a test runs every command of README.md and of docs/operations.
// TestReadme runs the blocks "sh" of README.md. TestMonitoring runs the blocks "sh" of the other
// pages. Every other block has a comment before it. The comment names the test that runs the block
// or produces the output (run), or the reason why no test runs it (not run).
func TestOperations(t *testing.T) {
	root := ".."
	pages, err := filepath.Glob(filepath.Join(root, "docs", "operations", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("the pages are %v: %v", pages, err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	exists(t, root, "README.md", "test/server/readme_test.go", "TestReadme", "")
	mark := regexp.MustCompile(`^<!-- (?:not run: .+|run: ([a-z0-9/_]+_test\.go):(Test[A-Za-z0-9]+)(?:/([^ ]+))?) -->$`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(page, root+string(filepath.Separator))
		for _, block := range blocksOf(string(text)) {
			found := mark.FindStringSubmatch(block.before)
			switch {
			case block.fence == "```sh":
			case found == nil:
				t.Errorf("%s: no comment says who runs the block that begins with %q", name, block.first)
			case found[1] != "":
				exists(t, root, name, found[1], found[2], found[3])
			}
		}
	}
}

// TestFirstPage checks that README.md stays short, and that the Makefile has every target that
// its sentences name. TestReference checks the commands of the plugin that they name.
func TestFirstPage(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 120 {
		t.Errorf("README.md has %d lines, and at most 120 are allowed", lines)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile("`make ([^` ]+)").FindAllStringSubmatch(string(text), -1)
	if len(targets) < 3 {
		t.Errorf("README.md names %d targets", len(targets))
	}
	for _, target := range targets {
		if !strings.Contains(string(makefile), "\n"+target[1]+":") {
			t.Errorf("README.md names make %s, which the Makefile does not have", target[1])
		}
	}
}

// block of code in a page.
type block struct {
	// before is the last line before it that is not empty, fence the one that begins
	// it, empty for a block that is indented, and first its first line.
	before, fence, first string
}

// blocksOf finds the blocks of code of a page, fenced or indented by four. A list has
// its continuation lines indented by less.
func blocksOf(text string) []block {
	var blocks []block
	lines := strings.Split(text, "\n")
	before, indented := "", false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "```"):
			blocks = append(blocks, block{before: before, fence: line, first: lines[i+1]})
			for i++; i < len(lines) && lines[i] != "```"; i++ {
			}
			before, indented = "```", false
		case strings.HasPrefix(line, "    "):
			if !indented {
				blocks = append(blocks, block{before: before, first: line})
			}
			indented = true
		case strings.TrimSpace(line) != "":
			before, indented = line, false
		}
	}
	return blocks
}

// TestBlocksOf: the function finds blocks, or TestOperations would prove nothing.
func TestBlocksOf(t *testing.T) {
	found := blocksOf("# Page\n\nWords:\n\n    one\n    more\n\n    still\n\n<!-- run: it -->\n```\n$ two\n    of it\n```\n\n- a list\n  goes on\n\n```sh\nthree\n```\n")
	if len(found) != 3 || found[0].before != "Words:" || found[1].before != "<!-- run: it -->" || found[2].fence != "```sh" {
		t.Errorf("found %+v", found)
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
