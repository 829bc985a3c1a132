package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// releaseDir creates a directory with two run levels. One manifest is for another profile, and one
// is to be deleted.
func releaseDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, annotations string) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + strings.TrimSuffix(name[8:], ".yaml") + "\n  namespace: a\n  annotations: {" + annotations + "}\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "_", "-")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0000_50_one_00.yaml", `include.release.openshift.io/ha: "true"`)
	write("0000_10_two_00.yaml", `include.release.openshift.io/ha: "true"`)
	write("0000_10_old_00.yaml", `include.release.openshift.io/ha: "true", release.openshift.io/delete: "true"`)
	write("0000_50_ibm_00.yaml", `include.release.openshift.io/ibm: "true"`)
	return dir
}

func TestRenderRelease(t *testing.T) {
	stdout, stderr, err := runRender("", releaseDir(t), "--layout=release", "--profile=ha", "--extension=cluster", "--revision=1")
	if err != nil {
		t.Fatal(err)
	}
	if first, second := strings.Index(stdout, "name: run-level-10"), strings.Index(stdout, "name: run-level-50"); first < 0 || second < first {
		t.Errorf("run levels are phases, in their order:\n%s", stdout)
	}
	want := "cluster-1: 2 objects in 2 phases\n  run-level-10  1 ConfigMap\n  run-level-50  1 ConfigMap\n" +
		"note: 1 manifest left out: not for profile ha\nnote: 1 manifest left out: to be deleted\n"
	if stderr != want {
		t.Errorf("got\n%swant\n%s", stderr, want)
	}
}

func TestRenderReleaseRefuses(t *testing.T) {
	dir := releaseDir(t)
	cases := map[string]struct {
		args []string
		says string
	}{
		"NoProfile":     {[]string{dir, "--layout=release"}, "--profile"},
		"UnknownLayout": {[]string{dir, "--layout=chart"}, `--layout "chart": want plain or release`},
		"FlagForNobody": {[]string{dir, "--profile=ha"}, "--profile does nothing without --layout release"},
		"Stream":        {[]string{"-", "--layout=release"}, "reads a directory"},
		"File":          {[]string{filepath.Join(dir, "0000_50_one_00.yaml"), "--layout=release"}, "reads a directory"},
		"PlaceInErrors": {[]string{dir, "--layout=release"}, filepath.Join(dir, "0000_10_old_00.yaml") + ":1: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := runRender("", append(tc.args, "--extension=cluster", "--revision=1")...)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want an error that says %q, got %v", tc.says, err)
			}
		})
	}
}
