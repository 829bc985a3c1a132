package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParsePlatforms(t *testing.T) {
	all := pluginPlatforms()
	if found, err := parsePlatforms("", all); err != nil || len(found) != 6 {
		t.Errorf("nothing said is %v, want all six: %v", found, err)
	}
	found, err := parsePlatforms("windows/arm64,linux/amd64", all)
	if want := []platform{{"windows", "arm64"}, {"linux", "amd64"}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("a list is %v, want %v: %v", found, want, err)
	}
	if _, err := parsePlatforms("linux/s390x", all); err == nil || !strings.Contains(err.Error(), `"linux/s390x"`) || !strings.Contains(err.Error(), "darwin/arm64") {
		t.Errorf("a platform that is not built: %v", err)
	}
}

// TestVacate: a mistyped output folder with other files is not deleted.
func TestVacate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := vacate(dir, "checksums.txt"); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("a folder that was not made here: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := vacate(dir, "checksums.txt"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("what was made before is still there: %v", err)
	}
}

// TestVersion: a version that krew, Helm or kubectl would refuse is refused before anything is
// built.
func TestVersion(t *testing.T) {
	for _, version := range []string{"1.2.3", "v1.2", "devel", "v1.2.3 ", "v1.2.3+build"} {
		if err := (&sources{version: version}).release(t.Context(), t.TempDir(), t.TempDir(), nil, signers{}); err == nil || !strings.Contains(err.Error(), "for instance v1.2.3") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// TestCommitted: a release needs a checkout without uncommitted changes.
func TestCommitted(t *testing.T) {
	t.Chdir(t.TempDir())
	final, trial := &sources{version: "v1.2.3", revision: "1f2e"}, &sources{version: "v1.2.3-test", revision: "1f2e"}
	if err := final.committed(t.Context()); err != nil {
		t.Errorf("sources without git: %v", err)
	}
	inGit(t, "init", "--quiet")
	inGit(t, "commit", "--quiet", "--allow-empty", "--message=a")
	if err := final.committed(t.Context()); err != nil {
		t.Errorf("a checkout as its commit is: %v", err)
	}
	if err := os.WriteFile("left.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := final.committed(t.Context()); err == nil || !strings.Contains(err.Error(), "left.yaml") || !strings.Contains(err.Error(), "v1.2.3-test") {
		t.Errorf("a file that is in no commit: %v", err)
	}
	if err := trial.committed(t.Context()); err != nil || trial.revision != "1f2e-dirty" {
		t.Errorf("a version that is not final is of %s: %v", trial.revision, err)
	}
}

func inGit(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=somebody", "-c", "user.email=somebody@example.com"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
