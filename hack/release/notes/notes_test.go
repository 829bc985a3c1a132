package notes_test

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/hack/release/notes"
)

func TestWrite(t *testing.T) {
	made := notes.Write(notes.Release{Version: "v1.1.0", Previous: "v1.0.0", Digest: "sha256:12", Subjects: []string{
		"Store: the second", "Docs: a page", "Store: the first", "no area here", "nor here",
	}})
	want := "5 commits since v1.0.0:\n\n## Store\n\n- the first\n- the second\n\n## Docs\n\n- a page\n\n## Other changes\n\n- nor here\n- no area here\n"
	if !strings.HasPrefix(made, "# Penstock v1.1.0\n") || !strings.HasSuffix(made, want) || !strings.Contains(made, "`sha256:12`") {
		t.Errorf("the notes are:\n%s", made)
	}
	for _, file := range []string{"penstock_v1.1.0_manifests.tar.gz", "penstock-1.1.0.tgz", "penstock_v1.1.0_image.tar.gz", "penstock-krew.yaml", "https://github.com/penstock-project/penstock/blob/v1.1.0/docs/operations/install.md"} {
		if !strings.Contains(made, file) {
			t.Errorf("the notes do not have %s", file)
		}
	}
	if first := notes.Write(notes.Release{Version: "v0.1.0", Subjects: []string{"a", "b"}}); !strings.Contains(first, "first release, of 2 commits") {
		t.Errorf("the notes of the first release are:\n%s", first)
	}
}
