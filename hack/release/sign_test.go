package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-project/penstock/hack/release/archive"
	"github.com/penstock-project/penstock/hack/release/layout"
	"github.com/penstock-project/penstock/hack/release/sign"
	"github.com/penstock-project/penstock/pkg/release"
	"github.com/penstock-project/penstock/pkg/sigstore"
)

func newKey(t *testing.T, made any) *sign.Key {
	t.Helper()
	content, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ReadKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content}), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newECDSA(t *testing.T) *sign.Key {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newKey(t, made)
}

// small creates and signs a release of three files. Its image has a program that does nothing.
func small(t *testing.T, key *sign.Key) string {
	t.Helper()
	return smallOf(t, key, strings.Repeat("1f", 20))
}

func smallOf(t *testing.T, key *sign.Key, revision string) string {
	t.Helper()
	root, dir, folder := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "image")
	program := filepath.Join(root, "penstock")
	for name, content := range map[string]string{program: "program", filepath.Join(root, "go.sum"): "sums", filepath.Join(dir, "NOTES.md"): "notes"} {
		if err := write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	s := &sources{root: root, version: "v1.2.3", revision: revision, created: time.Unix(1, 0)}
	if _, err := layout.Write(folder, []layout.Program{{OS: "linux", Architecture: "amd64", Path: program, BOM: []byte("{}")}}, layout.Options{Version: s.version}); err != nil {
		t.Fatal(err)
	}
	files, err := archive.Folder(folder, "image")
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Write(filepath.Join(dir, "penstock_v1.2.3_image.tar.gz"), files, s.created); err != nil {
		t.Fatal(err)
	}
	all, err := archive.Sums(dir, release.Signed)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(dir, release.Checksums), []byte(all)); err != nil {
		t.Fatal(err)
	}
	if err := s.sign(key, dir, folder, []platform{{"linux", "amd64"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verified(t *testing.T, dir string, key *sign.Key, wanted release.Wanted) map[string]error {
	t.Helper()
	by, err := sigstore.ByKey(key.Public)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]error{}
	for _, step := range release.Verify(dir, by, wanted) {
		if step.Err == nil && step.Found == "" {
			t.Errorf("step %s says nothing", step.Name)
		}
		found[step.Name] = step.Err
	}
	return found
}

// TestVerify: each change of a release fails the right step.
func TestVerify(t *testing.T) {
	key := newECDSA(t)
	signedByOther := small(t, newECDSA(t))
	take := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			content, err := os.ReadFile(filepath.Join(signedByOther, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := write(filepath.Join(dir, name), content); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := write(filepath.Join(dir, name), []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const signatures = "penstock_v1.2.3_image_signatures.tar.gz"
	for name, c := range map[string]struct {
		reason string
		change func(t *testing.T, dir string)
		wanted release.Wanted
		// failing is the first step that fails. want is a part of its error.
		failing, want string
	}{
		"whole":          {reason: "nothing is changed"},
		"some":           {reason: "a user downloads some files", change: remove("NOTES.md")},
		"image-left-out": {reason: "the image is in a registry", change: remove("penstock_v1.2.3_image.tar.gz")},
		"no-signatures":  {reason: "the signatures of the image are in a registry", change: remove(signatures)},
		"source":         {reason: "the repository is the one that is wanted", wanted: release.Wanted{Source: "https://github.com/penstock-project/penstock"}},
		"other-source":   {reason: "another repository", wanted: release.Wanted{Source: "https://github.com/penstock-project/pen"}, failing: "provenance", want: "source"},
		"other-builder":  {reason: "another builder", wanted: release.Wanted{Builder: "https://ci.example.com"}, failing: "provenance", want: "builder"},
		"changed":        {reason: "a file has other content", change: put("NOTES.md", "other"), failing: "files", want: "NOTES.md has the SHA-256"},
		"added":          {reason: "a file is in no checksum", change: put("kubectl-penstock", "#!/bin/sh"), failing: "files", want: "kubectl-penstock is not in"},
		"sums":           {reason: "checksums of somebody", change: put(release.Checksums, strings.Repeat("ab", 32)+"  NOTES.md\n"), failing: "signature", want: "verifying checksums.txt.sigstore.json"},
		"unsigned":       {reason: "no signature", change: remove(release.Signature), failing: "signature", want: "no such file"},
		"other-key":      {reason: "a signature by another key", change: take(release.Signature), failing: "signature", want: "signature"},
		"no-provenance":  {reason: "no provenance", change: remove(release.Provenance), failing: "provenance", want: "no such file"},
		"provenance":     {reason: "a provenance by another key", change: take(release.Provenance), failing: "provenance", want: "signature"},
		"bomb": {reason: "signatures that are large when unpacked", change: func(t *testing.T, dir string) {
			var content bytes.Buffer
			packed := gzip.NewWriter(&content)
			unpacked := tar.NewWriter(packed)
			if err := unpacked.WriteHeader(&tar.Header{Name: "image/a", Typeflag: tar.TypeReg, Size: 64 << 20, Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			if _, err := unpacked.Write(make([]byte, 64<<20)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(unpacked.Close(), packed.Close()); err != nil {
				t.Fatal(err)
			}
			put(signatures, content.String())(t, dir)
		}, failing: "image", want: "too large"},
		"pipe": {reason: "a named pipe in place of a file", change: func(t *testing.T, dir string) {
			remove("NOTES.md")(t, dir)
			if err := syscall.Mkfifo(filepath.Join(dir, "NOTES.md"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, failing: "files", want: "NOTES.md is no regular file"},
		"other image": {reason: "an image that has another checksum is not read", change: put("penstock_v1.2.3_image.tar.gz", "other"), failing: "files", want: "has the SHA-256"},
		"image":       {reason: "signatures of the image by another key", change: take(signatures), failing: "image", want: "signature"},
		"blob": {reason: "a signature in place of the provenance", change: func(t *testing.T, dir string) {
			content, err := os.ReadFile(filepath.Join(dir, release.Signature))
			if err != nil {
				t.Fatal(err)
			}
			put(release.Provenance, string(content))(t, dir)
		}, failing: "provenance", want: "no attestation"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t, key)
			if c.change != nil {
				c.change(t, dir)
			}
			found := verified(t, dir, key, c.wanted)
			for _, step := range []string{"signature", "files", "provenance", "image"} {
				err := found[step]
				if step != c.failing {
					if err != nil {
						t.Errorf("%s: step %s: %v", c.reason, step, err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: step %s: %v, want an error with %q", c.reason, step, err, c.want)
				}
				// Later steps may fail for the same reason.
				break
			}
		})
	}
}

// TestVerifyModified: a release from a checkout with uncommitted changes is reported as such. It is
// refused if the user names a source, because no commit contains it.
func TestVerifyModified(t *testing.T) {
	key := newECDSA(t)
	by, err := sigstore.ByKey(key.Public)
	if err != nil {
		t.Fatal(err)
	}
	const source = "https://github.com/penstock-project/penstock"
	for name, c := range map[string]struct {
		revision, source string
		want             string
		fails            bool
	}{
		"clean":                        {revision: strings.Repeat("1f", 20)},
		"clean, with a source":         {revision: strings.Repeat("1f", 20), source: source},
		"with changes":                 {revision: strings.Repeat("1f", 20) + modified, want: "with changes that are in no commit"},
		"with changes and of a source": {revision: strings.Repeat("1f", 20) + modified, source: source, want: "with changes that are in no commit", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			step := release.Verify(smallOf(t, key, c.revision), by, release.Wanted{Source: c.source})[2]
			if (step.Err != nil) != c.fails {
				t.Errorf("found %v", step.Err)
			}
			if said := step.Found + step.Error; !strings.Contains(said, c.want) || c.want == "" && strings.Contains(said, "changes") {
				t.Errorf("it says %q, want %q", said, c.want)
			}
		})
	}
}

// TestSignedAgain: the same key creates the same signatures, so that a release can be reproduced.
func TestSignedAgain(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]*sign.Key{"ECDSA": newECDSA(t), "Ed25519": newKey(t, private)} {
		t.Run(name, func(t *testing.T) {
			one, other := small(t, key), small(t, key)
			entries, err := os.ReadDir(one)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 6 {
				t.Errorf("the release has %d files, want 6", len(entries))
			}
			for _, entry := range entries {
				a, err := archive.Sum(filepath.Join(one, entry.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if b, err := archive.Sum(filepath.Join(other, entry.Name())); err != nil || a != b {
					t.Errorf("%s differs: %v", entry.Name(), err)
				}
			}
		})
	}
}

// TestSignWithoutCommit: the provenance names the commit, so a release without a commit cannot be
// signed.
func TestSignWithoutCommit(t *testing.T) {
	err := (&sources{version: "v1.2.3", revision: ""}).sign(newECDSA(t), t.TempDir(), t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "commit") {
		t.Errorf("a release of no commit: %v", err)
	}
}
