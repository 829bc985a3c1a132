package governance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every one of the twenty defects has a row, and every row a test that is named for
// it and exists.
func TestDefectsTable(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "configuration-plan-defects.md"))
	if err != nil {
		t.Fatal(err)
	}
	for number := 1; number <= 20; number++ {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\| [^|]+ \\| `([^`:]+):(TestDefect%02d[A-Za-z0-9]+)` \\|$", number, number)).FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("defect %d has no row that names a test TestDefect%02d…", number, number)
			continue
		}
		exists(t, root, row[1], row[2])
	}
	for _, named := range regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		exists(t, root, named[1], named[2])
	}
}

func exists(t *testing.T, root, file, test string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Error(err)
	} else if !strings.Contains(string(source), "func "+test+"(t *testing.T)") {
		t.Errorf("%s has no test %s", file, test)
	}
}
