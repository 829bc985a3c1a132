package notes_test

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/hack/release/notes"
)

const changelog = "# Changelog\n\nAbout it.\n\n## Unreleased\n\n- next\n\n## v1.1.0 (2026-12-01)\n\n### Fixed\n\n- this\n\n## v1.1.0-rc.1\n\n- that\n\n## v1.0.0\n"

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		final   bool
		want    string
	}{
		"a date follows the version":         {"v1.1.0", true, "### Fixed\n\n- this"},
		"a candidate with a section":         {"v1.1.0-rc.1", false, "- that"},
		"a candidate without one":            {"v1.2.0-rc.1", false, "- next"},
		"the last section, which is empty":   {"v1.0.0", true, ""},
		"no other version begins like a tag": {"v1.1", false, "- next"},
	} {
		if got, err := notes.Changes(changelog, c.version, c.final); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
		}
	}
	if _, err := notes.Changes(changelog, "v1.2.0", true); err == nil || !strings.Contains(err.Error(), `"## v1.2.0"`) {
		t.Errorf("a final version without a section: %v", err)
	}
}

func TestWrite(t *testing.T) {
	made := notes.Write(notes.Release{Version: "v1.1.0", Digest: "sha256:12", Changes: "- 100% of it"})
	if !strings.HasPrefix(made, "# Penstock v1.1.0\n\n- 100% of it\n\n## Files\n") || !strings.Contains(made, "`sha256:12`") || strings.Contains(made, "%!") {
		t.Errorf("the notes are:\n%s", made)
	}
	for _, file := range []string{"penstock_v1.1.0_manifests.tar.gz", "penstock-1.1.0.tgz", "penstock_v1.1.0_image.tar.gz", "penstock-krew.yaml", "https://github.com/penstock-project/penstock/blob/v1.1.0/docs/operations/install.md"} {
		if !strings.Contains(made, file) {
			t.Errorf("the notes do not have %s", file)
		}
	}
}
