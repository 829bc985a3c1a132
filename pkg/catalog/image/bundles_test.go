package image

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/pkg/verification"
)

const bundleV03 = "application/vnd.dev.sigstore.bundle.v0.3+json"

// byText are rules that accept the text "signs DIGEST" as a bundle of that image.
type byText struct{ version string }

func (b byText) Digest() string { return "rules " + b.version }
func (b byText) Policy() string { return "sha256:policy" }
func (b byText) String() string { return `rules[0] "registry.example.com"` }
func (b byText) Verify(_ context.Context, bundles [][]byte, of string) ([]string, error) {
	if slices.ContainsFunc(bundles, func(one []byte) bool { return string(one) == "signs "+of }) {
		return []string{"key ours"}, nil
	}
	return nil, fmt.Errorf("none of %d bundles is a signature", len(bundles))
}

// refer pushes an artifact that refers to an image, and returns its descriptor.
func (s *served) refer(content []byte) specs.Descriptor {
	s.t.Helper()
	layer := s.blob(content)
	layer.MediaType = bundleV03
	config := s.blob([]byte("{}"))
	config.MediaType = specs.MediaTypeEmptyJSON
	made, err := json.Marshal(specs.Manifest{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageManifest, ArtifactType: bundleV03, Config: config, Layers: []specs.Descriptor{layer}})
	if err != nil {
		s.t.Fatal(err)
	}
	of := digest.FromBytes(made)
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+of.String(), specs.MediaTypeImageManifest, made)
	return specs.Descriptor{MediaType: specs.MediaTypeImageManifest, ArtifactType: bundleV03, Digest: of, Size: int64(len(made))}
}

// indexed pushes an index of images or referrers to a tag.
func (s *served) indexed(tag string, of ...specs.Descriptor) digest.Digest {
	s.t.Helper()
	content := index(s.t, of)
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+tag, specs.MediaTypeImageIndex, content)
	return digest.FromBytes(content)
}

func index(t *testing.T, of []specs.Descriptor) []byte {
	t.Helper()
	content, err := json.Marshal(specs.Index{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageIndex, Manifests: of})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// answer answers instead of the registry if it returns true.
type answer = func(http.ResponseWriter, *http.Request, http.Handler) bool

// referrersTag returns the tag of an image's referrers in a registry without the referrers API.
func referrersTag(of digest.Digest) string { return strings.Replace(of.String(), ":", "-", 1) }

// TestBundles: an image needs a bundle that the rules accept, in any place where a registry can
// keep it. A missing answer is requested again. A wrong bundle leads to a refusal.
func TestBundles(t *testing.T) {
	status := func(part string, code int) answer {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			w.WriteHeader(code)
			return true
		}
	}
	listed := func(found []byte) answer {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.Contains(r.URL.Path, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", specs.MediaTypeImageIndex)
			_, _ = w.Write(found)
			return true
		}
	}
	signs := func(of digest.Digest) []byte { return []byte("signs " + of.String()) }
	for test, c := range map[string]struct {
		reason string
		// have creates referrers of the image. It may return a function that answers instead of the
		// registry.
		have   func(s *served, of digest.Digest) answer
		policy string
		// mirrored is true if a mirror has the image without referrers.
		mirrored bool
		err      string
		outage   bool
	}{
		"tag": {reason: "a registry without the referrers API", have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer([]byte("something else")), s.refer(signs(of)))
			return nil
		}},
		"referrers": {reason: "a registry with the referrers API", have: func(s *served, of digest.Digest) answer {
			return listed(index(s.t, []specs.Descriptor{s.refer(signs(of))}))
		}},
		"mirror": {reason: "a mirror copies few referrers", mirrored: true, have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer(signs(of)))
			return nil
		}},
		"policy allows": {reason: "the rules add to policy.json", policy: `{"default":[{"type":"insecureAcceptAnything"}]}`, err: "none of 0 bundles"},
		"policy rejects": {reason: "the rules never loosen policy.json", policy: `{"default":[{"type":"reject"}]}`, have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer(signs(of)))
			return nil
		}, err: "rejected"},
		"none": {reason: "nobody signed", err: "the verification policy (rules[0] \"registry.example.com\") does not allow it"},
		"another image": {reason: "a signature of another image", have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer(signs(digest.FromString("other"))))
			return nil
		}, err: "none of 1 bundles"},
		"too many": {reason: "as many as a stranger likes", have: func(s *served, of digest.Digest) answer {
			all := []specs.Descriptor{s.refer(signs(of))}
			for n := range mostBundles {
				all = append(all, s.refer(fmt.Appendf(nil, "bundle %d", n)))
			}
			s.indexed(referrersTag(of), all...)
			return nil
		}, err: "more than 20 Sigstore bundles"},
		"too large": {reason: "as large as a stranger likes", have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer(bytes.Repeat([]byte(" "), largestReferrers+1)))
			return nil
		}, err: "more than 1048576 bytes"},
		"other bytes": {reason: "a registry that serves a bundle of another digest", have: func(s *served, of digest.Digest) answer {
			content := []byte("a bundle")
			s.indexed(referrersTag(of), s.refer(content))
			return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !strings.HasSuffix(r.URL.Path, "/blobs/"+digest.FromBytes(content).String()) {
					return false
				}
				_, _ = w.Write(signs(of))
				return true
			}
		}, err: "serves other bytes"},
		"gone": {reason: "the index names what is not there", have: func(s *served, of digest.Digest) answer {
			return listed(index(s.t, []specs.Descriptor{{ArtifactType: bundleV03, Digest: digest.FromString("gone")}}))
		}, err: "404"},
		"no digest": {reason: "a digest is part of a path", have: func(s *served, of digest.Digest) answer {
			return listed(index(s.t, []specs.Descriptor{{ArtifactType: bundleV03, Digest: "../../../evil"}}))
		}, err: "invalid checksum digest format"},
		"outage": {reason: "referrers may be there the next time", have: func(*served, digest.Digest) answer {
			return status("/referrers/", http.StatusInternalServerError)
		}, err: "500", outage: true},
		"outage of a bundle": {reason: "the bundle may be there the next time", have: func(s *served, of digest.Digest) answer {
			s.indexed(referrersTag(of), s.refer(signs(of)))
			return status("/blobs/"+digest.FromBytes(signs(of)).String(), http.StatusServiceUnavailable)
		}, err: "503", outage: true},
		"mirror of an outage": {reason: "the mirror has no referrers, and the registry does not say", mirrored: true, have: func(*served, digest.Digest) answer {
			return status("/referrers/", http.StatusBadGateway)
		}, err: "502", outage: true},
	} {
		t.Run(test, func(t *testing.T) {
			s := serve(t)
			of := s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: test})}})
			if c.have != nil {
				if answer := c.have(s, of); answer != nil {
					s.answer(answer)
				}
			}
			var waits atomic.Int64
			options := s.options(&waits)
			options.Registries.Rules = func(string, string) (Rules, error) { return byText{}, nil }
			if c.policy != "" {
				options.Registries.Policy = fileOf(t, []byte(c.policy))
			}
			if c.mirrored {
				mirror := serve(t)
				mirror.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: test})}})
				options.Registries.Conf = fileOf(t, fmt.Appendf(nil, "[[registry]]\nprefix=%[1]q\nlocation=%[1]q\n[[registry.mirror]]\nlocation=%[2]q\n", s.host+"/ns/thing", mirror.host+"/ns/thing"))
				mirror.trusted(options.Registries.Certs)
			}
			found, err := opened(t, t.TempDir(), options).Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v1"})
			if c.err == "" {
				if err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
				defer found.Close()
				if found.Signed == nil || !slices.Equal(found.Signed.Signers, []string{"key ours"}) || found.Signed.Verification != "sha256:policy" || found.Signed.Time.IsZero() {
					t.Errorf("%s: the record is %s", c.reason, found.Signed)
				}
				return
			}
			var refused *Refused
			if err == nil || !strings.Contains(err.Error(), c.err) || errors.As(err, &refused) == c.outage || c.outage != (waits.Load() > 0) {
				t.Errorf("%s: got %v after %d pauses, want %q", c.reason, err, waits.Load(), c.err)
			}
		})
	}
}

// TestBundlesOfIndex: the signature of an index does not suffice for the image in it, and the
// refusal names the remedy.
func TestBundlesOfIndex(t *testing.T) {
	s := serve(t)
	of := s.push("v1-linux", made{layers: [][]byte{layer(t, entry{name: "a", content: "a"})}})
	one := specs.Descriptor{MediaType: specs.MediaTypeImageManifest, Digest: of, Size: s.sizeOf(of), Platform: &specs.Platform{OS: "linux", Architecture: "amd64"}}
	other := one
	other.Platform = &specs.Platform{OS: "linux", Architecture: "arm64"}
	top := s.indexed("v1", one, other)
	s.indexed(referrersTag(top), s.refer([]byte("signs "+top.String())))
	options := s.options(new(atomic.Int64))
	options.Registries.Rules = func(string, string) (Rules, error) { return byText{}, nil }
	fetch := func() error {
		found, err := opened(t, t.TempDir(), options).Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v1"})
		if err == nil {
			_ = found.Close()
		}
		return err
	}
	if err := fetch(); err == nil || !strings.Contains(err.Error(), "its index is signed") {
		t.Errorf("found %v", err)
	}
	s.indexed(referrersTag(of), s.refer([]byte("signs "+of.String())))
	if err := fetch(); err != nil {
		t.Error(err)
	}
}

func (s *served) sizeOf(of digest.Digest) int64 {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodHead, s.URL+"/v2/ns/thing/manifests/"+of.String(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.ContentLength
}

// TestBundlesAgain: a stored image is verified once for the same rules, and again for other rules.
// The catalog determines the rules.
func TestBundlesAgain(t *testing.T) {
	s := serve(t)
	of := s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "a"})}})
	s.indexed(referrersTag(of), s.refer([]byte("signs "+of.String())))
	options := s.options(new(atomic.Int64))
	version := "1"
	options.Registries.Rules = func(_, catalog string) (Rules, error) {
		if catalog == "" {
			return nil, nil
		}
		return byText{version}, nil
	}
	store := opened(t, t.TempDir(), options)
	fetch := func(catalog string) (*Image, int64) {
		t.Helper()
		before := s.requests.Load()
		found, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing@" + of.String(), Catalog: catalog})
		if err != nil {
			t.Fatal(err)
		}
		_ = found.Close()
		return found, s.requests.Load() - before
	}
	if found, _ := fetch(""); found.Signed != nil {
		t.Errorf("no rule applies, and the record is %s", found.Signed)
	}
	if found, asked := fetch("community"); found.Signed == nil || asked == 0 {
		t.Errorf("the record is %s after %d requests", found.Signed, asked)
	}
	if found, asked := fetch("community"); found.Signed == nil || asked != 0 {
		t.Errorf("the record is %s after %d requests, by the same rules", found.Signed, asked)
	}
	version = "2"
	if found, asked := fetch("community"); found.Signed == nil || asked == 0 {
		t.Errorf("the record is %s after %d requests, by other rules", found.Signed, asked)
	}
}

func sigstoreKey(t *testing.T) (key *ecdsa.PrivateKey, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, fileOf(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
}

// TestCosign3: an image that cosign 3.1.3 signed with a key is accepted by a rule with that key.
// The files are what cosign pushed: manifest.json is the image, signature.json the referrer,
// bundle.json its layer, and referrers.json the index at the tag. The command was cosign sign --key
// cosign.key --signing-config FILE, where FILE names no log.
func TestCosign3(t *testing.T) {
	file := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join("testdata/cosign3", name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	s := serve(t)
	for _, name := range []string{"config.json", "layer.tar.gz", "bundle.json"} {
		s.blob(file(name))
	}
	s.blob([]byte("{}"))
	of, signature := digest.FromBytes(file("manifest.json")), digest.FromBytes(file("signature.json"))
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+of.String(), specs.MediaTypeImageManifest, file("manifest.json"))
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+signature.String(), specs.MediaTypeImageManifest, file("signature.json"))
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+referrersTag(of), specs.MediaTypeImageIndex, file("referrers.json"))
	_, other := sigstoreKey(t)
	for test, c := range map[string]struct {
		key, err string
	}{
		"the key":     {key: fileOf(t, file("cosign.pub"))},
		"another key": {key: other, err: "the signature is not by the key"},
	} {
		t.Run(test, func(t *testing.T) {
			rules := fmt.Appendf(nil, "rules: [{match: %s/ns/thing, anyOf: [{key: %s}]}]\n", s.host, c.key)
			policy, err := verification.Load(fileOf(t, rules))
			if err != nil {
				t.Fatal(err)
			}
			options := s.options(new(atomic.Int64))
			options.Registries.Rules = func(name, catalog string) (Rules, error) { return policy.For(name, catalog), nil }
			found, err := opened(t, t.TempDir(), options).Fetch(t.Context(), Request{Reference: s.host + "/ns/thing@" + of.String()})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("found %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer found.Close()
			if found.Signed == nil || len(found.Signed.Signers) != 1 || !strings.HasPrefix(found.Signed.Signers[0], "key sha256:") {
				t.Errorf("the record is %s", found.Signed)
			}
		})
	}
}
