package fences

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestSuitesHaveATag: go test ./... runs only unit tests. A package whose tests start a control
// plane has the build constraint integration in all of its test files.
func TestSuitesHaveATag(t *testing.T) {
	// These packages start control planes.
	starters := []string{"framework/cluster\"", "framework/penstock\"", "framework/plane\"", "framework/replicas\""}
	starts, without := map[string]bool{}, map[string][]string{}
	root := os.DirFS("..")
	for _, top := range []string{"pkg", "cmd", "hack", "test"} {
		err := fs.WalkDir(root, top, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if _, err := fs.Stat(root, path.Join(file, "go.mod")); entry.IsDir() && err == nil {
				return fs.SkipDir
			}
			if !strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/demo/") || file == "pkg/suites_test.go" {
				return nil
			}
			source, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			folder := path.Dir(file)
			for _, starter := range starters {
				starts[folder] = starts[folder] || strings.Contains(string(source), starter)
			}
			if !strings.HasPrefix(string(source), "//go:build integration\n") {
				without[folder] = append(without[folder], file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !starts["test/server"] {
		t.Fatal("test/server starts control planes, and the test does not see it")
	}
	for folder := range starts {
		for _, file := range without[folder] {
			if starts[folder] {
				t.Errorf("tests in %s start control planes: begin %s with //go:build integration", folder, file)
			}
		}
	}
}
