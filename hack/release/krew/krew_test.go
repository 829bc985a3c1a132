package krew_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/hack/release/archive"
	"github.com/penstock-project/penstock/hack/release/krew"
)

// archives writes the archives of a release, with the license under the given name.
func archives(t *testing.T, dir string, license string) []krew.Archive {
	t.Helper()
	content := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(content, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made []krew.Archive
	for _, of := range []krew.Archive{{OS: "linux", Program: "kubectl-penstock"}, {OS: "windows", Program: "kubectl-penstock.exe"}} {
		of.Architecture, of.Path = "amd64", filepath.Join(dir, "kubectl-penstock_"+of.OS+".tar.gz")
		files := []archive.File{{Name: of.Program, Path: content, Program: true}, {Name: license, Path: content}}
		if err := archive.Write(of.Path, files, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		made = append(made, of)
	}
	return made
}

const base = "https://github.com/penstock-project/penstock/releases/download/v1.2.3"

func manifest(t *testing.T, dir, license string) []byte {
	t.Helper()
	made, err := krew.Make("v1.2.3", base, archives(t, dir, license))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestMake(t *testing.T) {
	dir := t.TempDir()
	made := manifest(t, dir, "LICENSE")
	if err := krew.Validate(made, dir); err != nil {
		t.Errorf("%v\n%s", err, made)
	}
}

// TestValidate: the check refuses the same manifests as the index of krew.
func TestValidate(t *testing.T) {
	dir, inFolder := t.TempDir(), t.TempDir()
	good, folder := manifest(t, dir, "LICENSE"), manifest(t, inFolder, "docs/LICENSE")
	replace := func(old, now string) []byte { return []byte(strings.ReplaceAll(string(good), old, now)) }
	cases := map[string]struct {
		reason   string
		manifest []byte
		dir      string
		want     string
	}{
		"version":     {"krew compares versions", replace("version: v1.2.3", "version: 1.2.3"), dir, "spec.version"},
		"part":        {"a semantic version has three numbers", replace("version: v1.2.3", "version: v1.2"), dir, "spec.version"},
		"name":        {"kubectl- is what krew adds", replace("name: penstock", "name: kubectl-penstock"), dir, "metadata.name"},
		"description": {"search shows 50 characters", replace("cluster changes", "changes of clusters and much more"), dir, "spec.shortDescription"},
		"selector":    {"krew knows no other label", replace("arch: amd64", "arch: amd64\n        libc: musl"), dir, "selector"},
		"twice":       {"the first would win", replace("os: windows", "os: linux"), dir, "selector"},
		"plain":       {"nobody could check where it is from", replace("https://", "http://"), dir, ".uri"},
		"sum":         {"an archive that was changed", replace("sha256: ", "sha256: a"), dir, ".sha256"},
		"program":     {"Windows asks for it", replace("kubectl-penstock.exe", "kubectl-penstock"), dir, ".bin"},
		"license":     {"the index wants it installed", replace("from: LICENSE", "from: README"), dir, "LICENSE"},
		"folder":      {"krew would need to know its name", folder, inFolder, "want a flat one"},
		"unknown":     {"a typing error", replace("homepage:", "homePages:"), dir, "homePages"},
		"missing":     {"an archive that is not there", good, t.TempDir(), ".uri"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := krew.Validate(tc.manifest, tc.dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error does not name %s: %v", tc.reason, tc.want, err)
			}
		})
	}
}
