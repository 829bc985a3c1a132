package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/penstock-project/penstock/hack/release/archive"
	"github.com/penstock-project/penstock/hack/release/bom"
	"github.com/penstock-project/penstock/hack/release/chart"
	"github.com/penstock-project/penstock/hack/release/krew"
	"github.com/penstock-project/penstock/hack/release/notes"
	"github.com/penstock-project/penstock/pkg/release"
)

const (
	// download is the base address of the files of a release, before the version.
	download = "https://github.com/penstock-project/penstock/releases/download/"
	// imageRepository is the repository of the image. Its signature names the repository.
	imageRepository = "ghcr.io/penstock-project/penstock"
)

func pluginPlatforms() []platform {
	var found []platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			found = append(found, platform{system, architecture})
		}
	}
	return found
}

// release creates all files in a folder, and replaces earlier files. Programs stay in the folder
// scratch. The image and the server are built only for their own platforms.
func (s *sources) release(ctx context.Context, dir, scratch string, platforms []platform, by signers) error {
	// Build metadata follows a +, which the tag of an image cannot contain.
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(s.version, "v"))
	if err != nil || !strings.HasPrefix(s.version, "v") || parsed.Metadata() != "" {
		return fmt.Errorf("the version is %q: a release has v and a semantic version without build metadata, for instance v1.2.3", s.version)
	}
	if err := s.committed(ctx); err != nil {
		return err
	}
	// The changelog is checked before anything is built.
	changelog, err := os.ReadFile(filepath.Join(s.root, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("reading what changed: %w", err)
	}
	changes, err := notes.Changes(string(changelog), s.version, parsed.Prerelease() == "")
	if err != nil {
		return fmt.Errorf("making release %s: %w", s.version, err)
	}
	if err := vacate(dir, release.Checksums); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	// This file lets the next attempt remove the rest of an interrupted one.
	if err := write(filepath.Join(dir, release.Checksums), nil); err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return !slices.Contains(imagePlatforms(), p) })
	digest, err := s.releaseImage(ctx, dir, scratch, servers)
	if err != nil {
		return err
	}
	for _, p := range servers {
		// The program was built for the image just now.
		if _, err := s.pack("penstock", p, filepath.Join(scratch, p.system+"-"+p.architecture, "penstock"), dir); err != nil {
			return err
		}
	}
	var plugins []krew.Archive
	for _, p := range platforms {
		path, err := s.build(ctx, "kubectl-penstock", p, scratch)
		if err != nil {
			return err
		}
		packed, err := s.pack("kubectl-penstock", p, path, dir)
		if err != nil {
			return err
		}
		plugins = append(plugins, krew.Archive{OS: p.system, Architecture: p.architecture, Path: packed, Program: p.file("kubectl-penstock")})
	}
	for _, step := range []func() error{
		func() error { return s.releaseKrew(dir, plugins) },
		func() error { return s.releaseChart(dir, by.pgp) },
		func() error { return s.releaseManifests(dir) },
		func() error { return s.releaseNotes(dir, digest, changes) },
		// The checksums come last, because they cover all other files.
		func() error { return sums(dir) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if by.key == nil {
		return nil
	}
	return s.sign(by.key, dir, filepath.Join(scratch, "image"), platforms)
}

// releaseImage packs the layout, which is a folder, into one file.
func (s sources) releaseImage(ctx context.Context, dir, scratch string, platforms []platform) (string, error) {
	folder := filepath.Join(scratch, "image")
	digest, err := s.image(ctx, folder, scratch, platforms)
	if err != nil {
		return "", err
	}
	files, err := archive.Folder(folder, "image")
	if err != nil {
		return "", err
	}
	return digest, archive.Write(filepath.Join(dir, "penstock_"+s.version+"_image.tar.gz"), files, s.created)
}

// pack creates a flat archive of a program with the license. It writes the bill of materials next
// to the archive.
func (s sources) pack(name string, p platform, path, dir string) (string, error) {
	base := filepath.Join(dir, fmt.Sprintf("%s_%s_%s_%s", name, s.version, p.system, p.architecture))
	bill, err := bom.Of(bom.Program{Path: path, Name: name, Version: s.version, Created: s.created})
	if err != nil {
		return "", err
	}
	if err := write(base+".cdx.json", bill); err != nil {
		return "", err
	}
	return base + ".tar.gz", archive.Write(base+".tar.gz", []archive.File{
		{Name: p.file(name), Path: path, Program: true}, {Name: "LICENSE", Path: filepath.Join(s.root, "LICENSE")},
	}, s.created)
}

func (s sources) releaseKrew(dir string, plugins []krew.Archive) error {
	manifest, err := krew.Make(s.version, download+s.version, plugins)
	if err != nil {
		return err
	}
	if err := krew.Validate(manifest, dir); err != nil {
		return fmt.Errorf("checking the manifest of krew: %w", err)
	}
	return write(filepath.Join(dir, "penstock-krew.yaml"), manifest)
}

// releaseChart packages the chart. pgp is a file with a secret key of OpenPGP that signs the chart.
func (s sources) releaseChart(dir, pgp string) error {
	found, err := chart.Load(filepath.Join(s.root, "artifacts", "chart"))
	if err != nil {
		return err
	}
	found.SetVersion(s.version)
	made, err := found.Package(dir, s.created)
	if err != nil || pgp == "" {
		return err
	}
	return found.Sign(made, pgp)
}

func (s sources) releaseManifests(dir string) error {
	files := []archive.File{{Name: "LICENSE", Path: filepath.Join(s.root, "LICENSE")}}
	for _, folder := range []string{"deploy", "examples", "monitoring"} {
		found, err := archive.Folder(filepath.Join(s.root, "artifacts", folder), "artifacts/"+folder)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	return archive.Write(filepath.Join(dir, "penstock_"+s.version+"_manifests.tar.gz"), files, s.created)
}

func (s sources) releaseNotes(dir, digest, changes string) error {
	return write(filepath.Join(dir, "NOTES.md"), []byte(notes.Write(notes.Release{Version: s.version, Digest: digest, Changes: changes})))
}

func sums(dir string) error {
	if err := os.Remove(filepath.Join(dir, release.Checksums)); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	all, err := archive.Sums(dir, release.Signed)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, release.Checksums), []byte(all))
}

func write(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing a file of the release: %w", err)
	}
	return nil
}
