package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReasonsAreRun checks that a test runs the command of each reason of the reference against its
// case, or that the reference says why none does.
func TestReasonsAreRun(t *testing.T) {
	root := ".."
	run, err := reasonsRun(root)
	if err != nil || len(run) < 20 {
		t.Fatalf("tests run the commands of %d reasons: %v", len(run), err)
	}
	reasons := read(t, root, "docs/reference/reasons.md")
	_, table, found := strings.Cut(reasons, "\n## Commands that no test runs\n")
	if !found {
		t.Fatal("reasons.md does not say which commands no test runs")
	}
	excused := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, reason := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[2], -1) {
			excused[strings.TrimSpace(cells[1])+"/"+reason[1]] = true
		}
	}
	documented := map[string]bool{}
	for heading, page := range map[string]string{"Of revisions": reasons, "Of plans": reasons, "Reasons of Ready": read(t, root, "docs/reference/clusterextension-status.md")} {
		_, rows, _ := strings.Cut(page, "\n## "+heading+"\n\n")
		rows, _, _ = strings.Cut(rows, "\n\n")
		for row := range strings.Lines(rows) {
			cells := strings.Split(row, "|")
			if len(cells) != 7 || !strings.Contains(cells[5], "`") {
				continue
			}
			reason := heading + "/" + strings.Trim(cells[1], " `")
			documented[reason] = true
			switch {
			case !run[reason] && !excused[reason]:
				t.Errorf("%s: no test runs its command, and reasons.md does not say why", reason)
			case run[reason] && excused[reason]:
				t.Errorf("%s: a test runs its command, and reasons.md says that none does", reason)
			}
		}
	}
	for _, named := range []map[string]bool{run, excused} {
		for reason := range named {
			if !documented[reason] {
				t.Errorf("%s is no reason with a command", reason)
			}
		}
	}
}

// reasonsRun finds the calls that run a command of the reference.
func reasonsRun(root string) (map[string]bool, error) {
	run := map[string]bool{}
	named := regexp.MustCompile(`\.(?:command|documented)\("(Of revisions|Of plans)", "([A-Za-z]+)"`)
	extension := regexp.MustCompile(`\.answers\([^"]*"([A-Za-z]+)"\)`)
	answer := regexp.MustCompile(`(?m)^\t\t"([A-Za-z]+)": \{$`)
	files, err := filepath.Glob(filepath.Join(root, "test", "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range named.FindAllStringSubmatch(string(content), -1) {
			run[found[1]+"/"+found[2]] = true
		}
		for _, found := range extension.FindAllStringSubmatch(string(content), -1) {
			heading := "Reasons of Ready"
			if found[1] == "Collision" {
				heading = "Of revisions"
			}
			run[heading+"/"+found[1]] = true
		}
		if strings.HasSuffix(filepath.ToSlash(file), "e2e/answers_test.go") {
			for _, found := range answer.FindAllStringSubmatch(string(content), -1) {
				run["Of revisions/"+found[1]] = true
			}
		}
	}
	return run, nil
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
