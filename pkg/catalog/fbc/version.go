package fbc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// longestRelease is in characters. Longer build metadata is not a release.
const longestRelease = 20

// Version is the version of a bundle, with its release. Bundles of the format registry+v1 have the
// release number in semver's build metadata.
type Version struct {
	semver.Version
	// Release is empty if the bundle has no release. If it is set, Version.Build is empty.
	Release []semver.PRVersion
}

// ParseVersion parses the version of a bundle. Build metadata that looks like a release becomes the
// release, and counts in comparisons. Other build metadata does not.
func ParseVersion(text string) (Version, error) {
	parsed, err := semver.Parse(text)
	if err != nil {
		return Version{}, err
	}
	version := Version{Version: parsed}
	if release, ok := parseRelease(parsed.Build); ok {
		version.Release, version.Build = release, nil
	}
	return version, nil
}

func parseRelease(build []string) ([]semver.PRVersion, bool) {
	if len(build) == 0 || len(strings.Join(build, ".")) > longestRelease {
		return nil, false
	}
	release := make([]semver.PRVersion, 0, len(build))
	for _, part := range build {
		parsed, err := semver.NewPRVersion(part)
		if err != nil {
			return nil, false
		}
		release = append(release, parsed)
	}
	return release, true
}

// Compare is negative if v is lower than other. It compares the version and then the release. No
// release is lower than any release, and numbers in a release are lower than words.
func (v Version) Compare(other Version) int {
	if c := v.Version.Compare(other.Version); c != 0 {
		return c
	}
	switch {
	case len(v.Release) == 0 && len(other.Release) == 0:
		return 0
	case len(v.Release) == 0:
		return -1
	case len(other.Release) == 0:
		return 1
	}
	return semver.Version{Pre: v.Release}.Compare(semver.Version{Pre: other.Release})
}

// String returns the version as the bundle writes it.
func (v Version) String() string {
	if len(v.Release) == 0 {
		return v.Version.String()
	}
	return v.Version.String() + "+" + v.ReleaseString()
}

// ReleaseString returns the release; empty if there is none.
func (v Version) ReleaseString() string {
	parts := make([]string, len(v.Release))
	for i, part := range v.Release {
		parts[i] = part.String()
	}
	return strings.Join(parts, ".")
}

// Version returns the version of the first property olm.package.
func (b *Bundle) Version() (Version, error) {
	for _, property := range b.Properties {
		if property.Type != PropertyPackage {
			continue
		}
		var value struct {
			Version string `json:"version"`
		}
		if err := json.Unmarshal(property.Value, &value); err != nil {
			return Version{}, fmt.Errorf("error unmarshalling package property: %w", err)
		}
		return ParseVersion(value.Version)
	}
	return Version{}, fmt.Errorf("no package property found in bundle %q", b.Name)
}
