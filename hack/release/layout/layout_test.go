package layout_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ociref "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/hack/release/layout"
)

var options = layout.Options{Version: "v1.2.3", Revision: "0123abc", Created: time.Unix(1_700_000_000, 0)}

func programs(t *testing.T, content string) []layout.Program {
	t.Helper()
	var found []layout.Program
	for _, architecture := range []string{"amd64", "arm64"} {
		path := filepath.Join(t.TempDir(), "penstock")
		if err := os.WriteFile(path, []byte(content+architecture), 0o600); err != nil {
			t.Fatal(err)
		}
		found = append(found, layout.Program{OS: "linux", Architecture: architecture, Path: path, BOM: []byte(`{"of": "` + architecture + `"}`)})
	}
	return found
}

func write(t *testing.T, content string, o layout.Options) (string, v1.Hash) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	digest, err := layout.Write(dir, programs(t, content), o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, digest
}

// TestReproducible: equal sources give equal images, so that users can check a release.
func TestReproducible(t *testing.T) {
	dir, first := write(t, "program", options)
	again, second := write(t, "program", options)
	if first != second {
		t.Errorf("the same programs made %s and %s", first, second)
	}
	if one, other := tree(t, dir), tree(t, again); one != other {
		t.Errorf("the folders differ:\n%s\n%s", one, other)
	}
	if _, other := write(t, "another", options); other == first {
		t.Error("another program made the same image")
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&out, "%s %x\n", strings.TrimPrefix(path, dir), len(content))
		if filepath.Base(path) == "index.json" {
			out.Write(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestValid: a library checks the image as a registry does on a push.
func TestValid(t *testing.T) {
	dir, digest := write(t, "program", options)
	index, err := layout.Index(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if found, err := index.Digest(); err != nil || found != digest {
		t.Errorf("the index is %s, and was said to be %s: %v", found, digest, err)
	}
}

// TestContent: the program is the only executable, no file belongs to its user, and no file has
// more permissions than it needs.
func TestContent(t *testing.T) {
	dir, _ := write(t, "program", options)
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := layout.Image(dir, "linux", architecture)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != layout.User || !slices.Equal(config.Config.Entrypoint, []string{"/penstock"}) || config.Architecture != architecture || config.OS != "linux" {
			t.Errorf("the configuration is %+v", config)
		}
		content := mutate.Extract(image)
		defer content.Close()
		files := tar.NewReader(content)
		var run []string
		for {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(options.Created) {
				t.Errorf("%s is of %d:%d, at %s", header.Name, header.Uid, header.Gid, header.ModTime)
			}
			if header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0 {
				run = append(run, header.Name)
			}
			if header.Mode&0o6022 != 0 && header.Name != "tmp/" && header.Name != "tmp" {
				t.Errorf("%s has the mode %o", header.Name, header.Mode)
			}
		}
		if !slices.Equal(run, []string{"penstock"}) {
			t.Errorf("what can be run is %v, want penstock alone", run)
		}
	}
}

// TestReferrers: a registry returns the bill of materials as a referrer of the image.
func TestReferrers(t *testing.T) {
	dir, _ := write(t, "program", options)
	outer, err := ociref.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, descriptor := range manifest.Manifests {
		if descriptor.ArtifactType != layout.BOMType {
			continue
		}
		var referrer specs.Manifest
		unmarshal(t, dir, descriptor.Digest, &referrer)
		if referrer.ArtifactType != layout.BOMType || referrer.Subject == nil || len(referrer.Layers) != 1 {
			t.Fatalf("a referrer is %+v", referrer)
		}
		content, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", referrer.Layers[0].Digest.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		found[referrer.Subject.Digest.String()] = string(content)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := layout.Image(dir, "linux", architecture)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"of": "` + architecture + `"}`; found[digest.String()] != want {
			t.Errorf("the bill of materials of %s is %q", architecture, found[digest.String()])
		}
	}
}

func unmarshal(t *testing.T, dir string, digest v1.Hash, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "blobs", digest.Algorithm, digest.Hex))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

func TestUnpack(t *testing.T) {
	dir, _ := write(t, "program of ", options)
	image, err := layout.Image(dir, "linux", "arm64")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := layout.Unpack(image, root); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(root, "penstock"))
	if err != nil || string(program) != "program of arm64" {
		t.Errorf("the program is %q: %v", program, err)
	}
	authorities, err := os.ReadFile(filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))
	if n := strings.Count(string(authorities), "BEGIN CERTIFICATE"); err != nil || n < 50 {
		t.Errorf("there are %d authorities: %v", n, err)
	}
	if _, err := layout.Image(dir, "linux", "s390x"); err == nil || !strings.Contains(err.Error(), "linux/s390x") {
		t.Errorf("an image that is not there: %v", err)
	}
}
