// Package chart renders and packages the chart in artifacts/chart with Helm's library. `helm
// template` and `helm package` give the same results.
package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/provenance"
	"sigs.k8s.io/yaml"
)

// Chart is a loaded chart.
type Chart struct{ read *chartv2.Chart }

// Load reads a folder, or an archive of a chart.
func Load(path string) (*Chart, error) {
	read, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("reading the chart %s: %w", path, err)
	}
	return &Chart{read}, nil
}

// SetVersion sets the version of a release: the chart of v1.2.3 has the version 1.2.3.
func (c *Chart) SetVersion(version string) {
	c.read.Metadata.Version, c.read.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
}

// Render returns the manifests as a stream of YAML. It returns an error if the chart's schema
// refuses the values, or if a template fails.
func (c *Chart) Render(ctx context.Context, namespace, kubernetes string, values map[string]any) (string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return "", fmt.Errorf("rendering for Kubernetes %q: %w", kubernetes, err)
	}
	capabilities.KubeVersion = *version
	if wanted := c.read.Metadata.KubeVersion; !chartutil.IsCompatibleRange(wanted, version.String()) {
		return "", fmt.Errorf("rendering for Kubernetes %s: the chart needs %s", version, wanted)
	}
	release := common.ReleaseOptions{Name: c.read.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c.read, values, release, capabilities)
	if err != nil {
		return "", fmt.Errorf("rendering the chart: %w", err)
	}
	made, err := engine.Engine{Strict: true}.RenderWithContext(ctx, c.read, all)
	if err != nil {
		return "", fmt.Errorf("rendering the chart: %w", err)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if text := strings.TrimSpace(made[name]); text != "" && path.Base(name) != "NOTES.txt" {
			fmt.Fprintf(&out, "---\n%s\n", strings.TrimPrefix(text, "---\n"))
		}
	}
	return out.String(), nil
}

// Package writes the archive to a folder, and returns its path. All files in it have the given
// time, so that equal charts give equal archives.
func (c *Chart) Package(dir string, created time.Time) (string, error) {
	c.read.ModTime, c.read.SchemaModTime = created, created
	for _, files := range [][]*common.File{c.read.Raw, c.read.Templates, c.read.Files} {
		for _, file := range files {
			file.ModTime = created
		}
	}
	path, err := chartutil.Save(c.read, dir)
	if err != nil {
		return "", fmt.Errorf("packaging the chart: %w", err)
	}
	return path, nil
}

// CheckKey checks a file with a secret key of OpenPGP. The key must have no password.
func CheckKey(key string) error {
	_, err := signatory(key)
	return err
}

func signatory(key string) (*provenance.Signatory, error) {
	found, err := provenance.NewFromFiles(key, key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of OpenPGP %s (gpg --export-secret-keys): %w", key, err)
	}
	if err := found.DecryptKey(func(string) ([]byte, error) { return nil, errors.New("it has a password") }); err != nil {
		return nil, fmt.Errorf("reading the key of OpenPGP %s: %w", key, err)
	}
	return found, nil
}

// Sign writes the signature next to an archive of the chart, like helm package --sign.
func (c *Chart) Sign(archive, key string) error {
	by, err := signatory(key)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("signing the chart: %w", err)
	}
	metadata, err := yaml.Marshal(c.read.Metadata)
	if err != nil {
		return fmt.Errorf("signing the chart: %w", err)
	}
	signed, err := by.ClearSign(content, filepath.Base(archive), metadata)
	if err != nil {
		return fmt.Errorf("signing the chart: %w", err)
	}
	if err := os.WriteFile(archive+".prov", []byte(signed), 0o644); err != nil {
		return fmt.Errorf("signing the chart: %w", err)
	}
	return nil
}
