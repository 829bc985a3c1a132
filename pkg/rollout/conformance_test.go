package rollout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConformanceTable: every test that docs/reference/engine-conformance.md names
// exists, so that the table cannot promise more than there is.
func TestConformanceTable(t *testing.T) {
	root := filepath.Join("..", "..")
	table, err := os.ReadFile(filepath.Join(root, "docs", "reference", "engine-conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(string(table), -1)
	if len(named) < 40 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		source, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		if !strings.Contains(string(source), "func "+m[2]+"(") {
			t.Errorf("%s: there is no such test", m[0])
		}
		// Subtests are the rows of a table in the same file.
		if m[3] != "" && !strings.Contains(string(source), `"`+m[3]+`"`) {
			t.Errorf("%s: there is no such row", m[0])
		}
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, "`") && !strings.Contains(line, "missing") &&
			!strings.Contains(line, "does not apply") && !strings.Contains(line, "| test |") {
			t.Errorf("the row says neither a test nor that it is missing: %s", line)
		}
	}
}

// TestMutatedOnEveryWrite: an admission webhook rewrites a value of ours on every
// write. What the server made of our apply is what is compared, so that there is
// nothing to repair.
func TestMutatedOnEveryWrite(t *testing.T) {
	s := newSaga()
	s.webhook = func(o *thing) { o.set("data:value", "rewritten", "webhook") }
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1", "Deployment.apps a/y=1"))
	for _, object := range []string{"ConfigMap a/x", "Deployment.apps a/y"} {
		if got := s.content(object); got != "rewritten" {
			t.Errorf("%s is %q", object, got)
		}
		// Somebody's write costs a look and an apply, and no loop.
		s.alter(refOf(object).ID, func(o *thing) { o.set("data:theirs", "1", "somebody") })
	}
	s.spent()
	for range 20 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if writes, reads := s.spent(); len(reads) > 2 || len(writes) > 4 {
		t.Errorf("20 passes made requests: %v %v", writes, reads)
	}
	s.restart()
	s.settle(t)
}
