// Package krew creates the manifest with which krew, the package manager of kubectl plugins,
// installs our plugin. It checks manifests and archives by krew's rules.
package krew

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/hack/release/archive"
)

const (
	apiVersion = "krew.googlecontainertools.github.com/v1alpha2"
	// wantedLength bounds the short description, because `kubectl krew search` cuts it.
	wantedLength = 50
)

// Manifest is a Plugin object of krew.
type Manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Metadata is the metadata of a Plugin.
type Metadata struct {
	Name string `json:"name"`
}

// Spec is the spec of a Plugin.
type Spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description,omitempty"`
	Platforms        []Platform `json:"platforms"`
}

// Platform is the archive for one platform.
type Platform struct {
	Selector Selector  `json:"selector"`
	URI      string    `json:"uri"`
	SHA256   string    `json:"sha256"`
	Bin      string    `json:"bin"`
	Files    []FileMap `json:"files,omitempty"`
}

// Selector selects a platform by the labels os and arch. krew knows no other labels.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// FileMap installs a file of the archive.
type FileMap struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Archive is an archive of the plugin.
type Archive struct {
	OS, Architecture string
	// Path is the path of the file. In the release, the file has the same name.
	Path string
	// Program is the name of the plugin in the archive.
	Program string
}

// Make returns the manifest of a release. base is the address of the release's files.
func Make(version, base string, archives []Archive) ([]byte, error) {
	made := Manifest{
		APIVersion: apiVersion, Kind: "Plugin", Metadata: Metadata{Name: "penstock"},
		Spec: Spec{
			Version: version, Homepage: "https://github.com/penstock-project/penstock",
			ShortDescription: "Review, roll out and roll back cluster changes",
			Description: "Works with Penstock, which makes every change to a cluster an immutable, phased, reviewable revision.\n" +
				"deploy, status, diff, rollback and plan are what a day needs; check says what is missing on the cluster.\n",
		},
	}
	for _, a := range archives {
		sum, err := archive.Sum(a.Path)
		if err != nil {
			return nil, err
		}
		made.Spec.Platforms = append(made.Spec.Platforms, Platform{
			Selector: Selector{map[string]string{"os": a.OS, "arch": a.Architecture}},
			URI:      base + "/" + filepath.Base(a.Path), SHA256: sum, Bin: a.Program,
			Files: []FileMap{{a.Program, "."}, {"LICENSE", "."}},
		})
	}
	out, err := yaml.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of krew: %w", err)
	}
	return out, nil
}

type refusals []error

func (r *refusals) add(field, format string, args ...any) {
	*r = append(*r, fmt.Errorf("%s: "+format, append([]any{field}, args...)...))
}

// Validate returns the reasons why krew or its index would refuse a manifest. It reads the named
// archives from dir, by the last part of their URL.
func Validate(data []byte, dir string) error {
	var m Manifest
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		return fmt.Errorf("reading the manifest of krew: %w", err)
	}
	var refused refusals
	if m.APIVersion != apiVersion || m.Kind != "Plugin" {
		refused.add("apiVersion", "it is %s %s, want %s Plugin", m.APIVersion, m.Kind, apiVersion)
	}
	if !regexp.MustCompile(`^[\w-]+$`).MatchString(m.Metadata.Name) || strings.HasPrefix(m.Metadata.Name, "kubectl") {
		refused.add("metadata.name", "it is %q, want words and dashes, without kubectl", m.Metadata.Name)
	}
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(m.Spec.Version, "v")); err != nil || !strings.HasPrefix(m.Spec.Version, "v") {
		refused.add("spec.version", "it is %q, want a semantic version with v before it", m.Spec.Version)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > wantedLength || strings.ContainsAny(m.Spec.ShortDescription, "\r\n") {
		refused.add("spec.shortDescription", "it has %d characters, want one line of 1 to %d", n, wantedLength)
	}
	if len(m.Spec.Platforms) == 0 {
		refused.add("spec.platforms", "there is none")
	}
	seen := map[string]bool{}
	for i, p := range m.Spec.Platforms {
		field, labels := fmt.Sprintf("spec.platforms[%d]", i), p.Selector.MatchLabels
		key := labels["os"] + "/" + labels["arch"]
		if len(labels) != 2 || labels["os"] == "" || labels["arch"] == "" || seen[key] {
			refused.add(field+".selector", "it is %v, want os and arch, and each pair once", labels)
		}
		seen[key] = true
		p.validate(field, dir, &refused)
	}
	return errors.Join(refused...)
}

func (p Platform) validate(field, dir string, refused *refusals) {
	address, err := url.Parse(p.URI)
	if err != nil || address.Scheme != "https" || !strings.HasSuffix(address.Path, ".tar.gz") {
		refused.add(field+".uri", "it is %q, want https and .tar.gz", p.URI)
		return
	}
	file := filepath.Join(dir, path.Base(address.Path))
	sum, err := archive.Sum(file)
	if err != nil {
		refused.add(field+".uri", "%w", err)
		return
	}
	if sum != p.SHA256 {
		refused.add(field+".sha256", "it is %q, and that of %s is %q", p.SHA256, file, sum)
	}
	if windows := p.Selector.MatchLabels["os"] == "windows"; windows != strings.HasSuffix(p.Bin, ".exe") {
		refused.add(field+".bin", "it is %q on %s", p.Bin, p.Selector.MatchLabels["os"])
	}
	content, err := archive.List(file)
	if err != nil {
		refused.add(field+".uri", "%w", err)
		return
	}
	for name := range content {
		if strings.Contains(name, "/") {
			refused.add(field+".uri", "%s is in a folder of the archive, want a flat one", name)
		}
	}
	if content[p.Bin]&0o111 == 0 {
		refused.add(field+".bin", "%q is not in the archive, or cannot be run", p.Bin)
	}
	for _, name := range []string{p.Bin, "LICENSE"} {
		if _, there := content[name]; !there || !slices.Contains(p.Files, FileMap{name, "."}) {
			refused.add(field+".files", "%s is not in the archive, or not installed", name)
		}
	}
}
