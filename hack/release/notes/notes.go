// Package notes writes the notes of a release from the subjects of commits, which here have
// the form "Area: what changed".
package notes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// other is the area of commits that name none. It comes last.
const other = "Other changes"

// Release is what the notes are of.
type Release struct {
	Version string
	// Previous is the tag before it; empty for the first release.
	Previous string
	// Digest of the image.
	Digest string
	// Subjects of the commits since then, the newest first.
	Subjects []string
}

// pages is where the pages of a version are read.
const pages = "https://github.com/penstock-project/penstock/blob/"

// files says what each file of a release is for.
func files(version string) string {
	return fmt.Sprintf(`
| file | what it is |
|---|---|
| penstock_%[1]s_image.tar.gz | the image for linux/amd64 and linux/arm64, a layout of the OCI |
| penstock-%[2]s.tgz | the Helm chart |
| penstock_%[1]s_manifests.tar.gz | manifests for kustomize, alerts, the dashboard, examples |
| penstock_%[1]s_*.tar.gz for a platform | the server, for outside of a cluster |
| kubectl-penstock_%[1]s_*.tar.gz | the plugin of kubectl; penstock-krew.yaml installs it by krew |
| *.cdx.json | bills of materials (CycloneDX) |

[Install](%[3]s%[1]s/docs/operations/install.md), [upgrade](%[3]s%[1]s/docs/operations/upgrade.md).
`, version, strings.TrimPrefix(version, "v"), pages)
}

// Write returns the notes as Markdown: areas with most changes first, and in each the oldest
// change first.
func Write(r Release) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Penstock %s\n\nThe digest of the image is `%s`. `sha256sum --check checksums.txt` verifies the files.\n"+
		"[CHANGELOG.md](%s%s/CHANGELOG.md) says what changed for those who use it.\n", r.Version, r.Digest, pages, r.Version)
	out.WriteString(files(r.Version))
	if r.Previous == "" {
		fmt.Fprintf(&out, "\nThis is the first release, of %d commits.\n", len(r.Subjects))
		return out.String()
	}
	areas := map[string][]string{}
	for _, subject := range slices.Backward(r.Subjects) {
		area, what, named := strings.Cut(subject, ": ")
		if !named {
			area, what = other, subject
		}
		areas[area] = append(areas[area], what)
	}
	fmt.Fprintf(&out, "\n%d commits since %s:\n", len(r.Subjects), r.Previous)
	for _, area := range slices.SortedFunc(maps.Keys(areas), func(a, b string) int {
		if a == other || b == other {
			return strings.Compare(map[bool]string{true: "last"}[a == other], map[bool]string{true: "last"}[b == other])
		}
		return cmp.Or(cmp.Compare(len(areas[b]), len(areas[a])), strings.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "\n## %s\n\n", area)
		for _, what := range areas[area] {
			fmt.Fprintf(&out, "- %s\n", what)
		}
	}
	return out.String()
}
