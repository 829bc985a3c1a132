// Package notes writes the notes of a release from CHANGELOG.md.
package notes

import (
	"fmt"
	"strings"
)

// unreleased is the heading of the changes since the last release.
const unreleased = "Unreleased"

// Release is the subject of the notes.
type Release struct {
	Version string
	// Digest is the digest of the image.
	Digest string
	// Changes is the section of CHANGELOG.md, as Changes returns it.
	Changes string
}

// Changes returns the section of a changelog for a version, without its heading. If a version that
// is not final, such as v1.2.3-test, has no section, Changes returns the unreleased changes.
func Changes(changelog, version string, final bool) (string, error) {
	if section, found := section(changelog, version); found {
		return section, nil
	}
	if final {
		return "", fmt.Errorf("CHANGELOG.md has no heading %q: move the entries under %q to it", "## "+version, "## "+unreleased)
	}
	section, _ := section(changelog, unreleased)
	return section, nil
}

// section returns the text under a heading of the second level. A date may follow the title.
func section(changelog, title string) (string, bool) {
	var lines []string
	found := false
	for line := range strings.Lines(changelog) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			if found {
				break
			}
			words := strings.Fields(heading)
			found = len(words) > 0 && words[0] == title
			continue
		}
		if found {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "")), found
}

// pages is the address of the pages of a version.
const pages = "https://github.com/penstock-project/penstock/blob/"

// Write returns the notes as Markdown.
func Write(r Release) string {
	return fmt.Sprintf("# Penstock %[1]s\n\n%[3]s\n"+`
## Files

The digest of the image is %[5]s. `+"`sha256sum --check checksums.txt`"+` compares the files;
[verify](%[4]s%[1]s/docs/reference/releases.md#verify) says how to verify signature and provenance.

| file | what it is |
|---|---|
| penstock_%[1]s_image.tar.gz | the image for linux/amd64 and linux/arm64, a layout of the OCI |
| penstock-%[2]s.tgz | the Helm chart |
| penstock_%[1]s_manifests.tar.gz | manifests for kustomize, alerts, the dashboard, examples |
| penstock_%[1]s_*.tar.gz for a platform | the server, for outside of a cluster |
| kubectl-penstock_%[1]s_*.tar.gz | the plugin of kubectl; penstock-krew.yaml installs it by krew |
| *.cdx.json | bills of materials (CycloneDX) |

[Install](%[4]s%[1]s/docs/operations/install.md), [upgrade](%[4]s%[1]s/docs/operations/upgrade.md).
`, r.Version, strings.TrimPrefix(r.Version, "v"), r.Changes, pages, "`"+r.Digest+"`")
}
