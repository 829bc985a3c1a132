//go:build containers_image_openpgp

package image

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	bundles "github.com/penstock-project/penstock/pkg/sigstore"
)

// payload returns the signed content for both kinds of signatures
// (https://github.com/containers/image/blob/main/docs/containers-signature.5.md).
func payload(t *testing.T, kind, ref string, of digest.Digest) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"type":     kind,
			"image":    map[string]string{"docker-manifest-digest": of.String()},
			"identity": map[string]string{"docker-reference": ref},
		},
		"optional": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// gpgKey returns a new key, and the file for a policy.
func gpgKey(t *testing.T) (key *openpgp.Entity, file string) {
	t.Helper()
	key, err := openpgp.NewEntity("Lamp", "", "lamp@example.com", &packet.Config{DefaultHash: crypto.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	if err := key.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	return key, fileOf(t, public.Bytes())
}

// gpgSign writes a signature to the place that registries.d names.
func gpgSign(t *testing.T, key *openpgp.Entity, lookaside, ref string, of digest.Digest) {
	t.Helper()
	var signed bytes.Buffer
	w, err := openpgp.Sign(&signed, key, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(payload(t, "atomic container signature", ref, of)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(lookaside, "ns", "thing@sha256="+of.Encoded())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "signature-1"), signed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sigstoreSign pushes a signature next to the image, as cosign does
// (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md).
func (s *served) sigstoreSign(key *ecdsa.PrivateKey, ref string, of digest.Digest) {
	s.t.Helper()
	content := payload(s.t, "cosign container image signature", ref, of)
	sum := sha256.Sum256(content)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	config, err := json.Marshal(specs.Image{RootFS: specs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(content)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	made := specs.Manifest{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageManifest, Config: s.blob(config)}
	made.Config.MediaType = specs.MediaTypeImageConfig
	layer := s.blob(content)
	layer.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	made.Layers = []specs.Descriptor{layer}
	if content, err = json.Marshal(made); err != nil {
		s.t.Fatal(err)
	}
	s.put(http.MethodPut, "/v2/ns/thing/manifests/sha256-"+of.Encoded()+".sig", made.MediaType, content)
}

// TestSignatures: an image is accepted if a signer that the policy names has signed it under this
// name, with GPG or sigstore. Otherwise it is refused with the reason.
func TestSignatures(t *testing.T) {
	s := serve(t)
	lookaside, registriesD := t.TempDir(), t.TempDir()
	conf := fmt.Sprintf("docker:\n  %s:\n    lookaside: file://%s\n    use-sigstore-attachments: true\n", s.host, lookaside)
	if err := os.WriteFile(filepath.Join(registriesD, "here.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	gpg, gpgFile := gpgKey(t)
	otherGPG, otherGPGFile := gpgKey(t)
	sigstore, sigstoreFile := sigstoreKey(t)
	otherSigstore, otherSigstoreFile := sigstoreKey(t)
	keyName, err := bundles.KeyName(sigstore.Public())
	if err != nil {
		t.Fatal(err)
	}
	gpgName, sigstoreName := fmt.Sprintf("OpenPGP key %x", gpg.PrimaryKey.Fingerprint), "key "+keyName
	byGPGs := fmt.Sprintf(`{"type":"signedBy","keyType":"GPGKeys","keyPaths":[%q,%q]}`, otherGPGFile, gpgFile)
	bySigstores := fmt.Sprintf(`{"type":"sigstoreSigned","keyPaths":[%q,%q]}`, otherSigstoreFile, sigstoreFile)
	byGPG := fmt.Sprintf(`{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}`, gpgFile)
	bySigstore := fmt.Sprintf(`{"type":"sigstoreSigned","keyPath":%q}`, sigstoreFile)
	name := s.host + "/ns/thing"
	for test, c := range map[string]struct {
		policy  string
		sign    func(ref string, of digest.Digest)
		want    string
		signers []string
	}{
		"gpg":             {policy: byGPG, sign: func(ref string, of digest.Digest) { gpgSign(t, gpg, lookaside, ref, of) }, signers: []string{gpgName}},
		"gpg-of-two":      {policy: byGPGs, sign: func(ref string, of digest.Digest) { gpgSign(t, gpg, lookaside, ref, of) }, signers: []string{gpgName}},
		"sigstore-of-two": {policy: bySigstores, sign: func(ref string, of digest.Digest) { s.sigstoreSign(sigstore, ref, of) }, signers: []string{sigstoreName}},
		"one-of-each": {policy: byGPG + "," + bySigstore, sign: func(ref string, of digest.Digest) {
			gpgSign(t, gpg, lookaside, ref, of)
			s.sigstoreSign(sigstore, ref, of)
		}, signers: []string{gpgName, sigstoreName}},
		"anything":          {policy: `{"type":"insecureAcceptAnything"}`},
		"gpg-unsigned":      {policy: byGPG, want: "no signature exists"},
		"gpg-other-key":     {policy: byGPG, sign: func(ref string, of digest.Digest) { gpgSign(t, otherGPG, lookaside, ref, of) }, want: "Key not found"},
		"gpg-other-tag":     {policy: byGPG, sign: func(_ string, of digest.Digest) { gpgSign(t, gpg, lookaside, name+":other", of) }, want: "identity"},
		"gpg-other-image":   {policy: byGPG, sign: func(ref string, of digest.Digest) { gpgSign(t, gpg, lookaside, ref, digest.FromString("x")) }, want: "no signature exists"},
		"sigstore":          {policy: bySigstore, sign: func(ref string, of digest.Digest) { s.sigstoreSign(sigstore, ref, of) }, signers: []string{sigstoreName}},
		"sigstore-unsigned": {policy: bySigstore, want: "no signature exists"},
		"sigstore-key":      {policy: bySigstore, sign: func(ref string, of digest.Digest) { s.sigstoreSign(otherSigstore, ref, of) }, want: "signature verification failed"},
		"sigstore-tag":      {policy: bySigstore, sign: func(_ string, of digest.Digest) { s.sigstoreSign(sigstore, name+":other", of) }, want: "identity"},
		"both":              {policy: byGPG + "," + bySigstore, sign: func(ref string, of digest.Digest) { gpgSign(t, gpg, lookaside, ref, of) }, want: "1 non-sigstore"},
	} {
		t.Run(test, func(t *testing.T) {
			options := s.options(new(atomic.Int64))
			options.Registries.Lookaside = registriesD
			options.Registries.Policy = fileOf(t, fmt.Appendf(nil, `{"default":[{"type":"reject"}],"transports":{"docker":{%q:[%s]}}}`, name, c.policy))
			ref := name + ":" + test
			pinned := s.push(test, made{layers: [][]byte{layer(t, entry{name: "a", content: test})}})
			if c.sign != nil {
				c.sign(ref, pinned)
			}
			store := opened(t, t.TempDir(), options)
			got, err := store.Fetch(t.Context(), Request{Reference: ref})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = got.Close()
				rule, record := fmt.Sprintf("docker %q", name), got.Signed
				if record == nil || record.Rule != rule || !slices.Equal(record.Signers, c.signers) || record.Time.IsZero() || !strings.HasPrefix(record.Policy, "sha256:") {
					t.Errorf("recorded is %s, want signers %q by the rule %s", record, c.signers, rule)
				}
				// The record is stored with the image.
				tagged, err := opened(t, store.root, options).Fetch(t.Context(), Request{Reference: ref})
				if err != nil {
					t.Fatal(err)
				}
				defer tagged.Close()
				if tagged.Signed.String() != record.String() {
					t.Errorf("kept is %s, recorded was %s", tagged.Signed, record)
				}
				return
			}
			var refused *Refused
			if !errors.As(err, &refused) {
				t.Fatalf("it is not refused: %v", err)
			}
			for _, want := range []string{ref, options.Registries.Policy, c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			nothingLeft(t, store.root)
		})
	}

	// Signatures that cannot be read now may be readable later, so this is not a refusal.
	var waits atomic.Int64
	options := s.options(&waits)
	options.Registries.Lookaside = registriesD
	options.Registries.Policy = fileOf(t, fmt.Appendf(nil, `{"default":[%s]}`, bySigstore))
	s.push("later", made{layers: [][]byte{layer(t, entry{name: "a", content: "later"})}})
	s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, ".sig") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var refused *Refused
	if _, err := opened(t, t.TempDir(), options).Fetch(t.Context(), Request{Reference: name + ":later"}); err == nil || errors.As(err, &refused) || waits.Load() == 0 {
		t.Errorf("found %v after %d pauses", err, waits.Load())
	}
}

// TestSigstoreBundle: a refused image with a Sigstore bundle is not called unsigned, with and
// without the referrers API. An answer that is missing, too large or forbidden never counts as "no
// bundle".
func TestSigstoreBundle(t *testing.T) {
	const bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	index := func(kind string) []byte {
		content, err := json.Marshal(specs.Index{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageIndex,
			Manifests: []specs.Descriptor{{MediaType: specs.MediaTypeImageManifest, ArtifactType: kind, Digest: digest.FromString(kind), Size: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	signed := `{"type":"sigstoreSigned","keyPath":%q}`
	type answers func(w http.ResponseWriter, path string) bool
	send := func(w http.ResponseWriter, content []byte) bool {
		w.Header().Set("Content-Type", specs.MediaTypeImageIndex)
		_, _ = w.Write(content)
		return true
	}
	status := func(w http.ResponseWriter, code int) bool {
		w.WriteHeader(code)
		return true
	}
	at := func(part string, do func(w http.ResponseWriter) bool) answers {
		return func(w http.ResponseWriter, path string) bool { return strings.Contains(path, part) && do(w) }
	}
	for test, c := range map[string]struct {
		requirement string
		answer      answers
		format      string
		says, not   string
		outage      bool
		// next is the second page. mirror is a registry that does not answer. mirrored is true if a
		// mirror answers first: it has the image, but no referrers.
		next     []byte
		mirror   string
		mirrored bool
	}{
		"referrers": {answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, index(bundle)) }), format: bundle, says: "SignatureFormatUnsupported"},
		"tag":       {answer: at("/manifests/sha256-DIGEST", func(w http.ResponseWriter) bool { return send(w, index(bundle)) }), format: bundle, says: "SignatureFormatUnsupported"},
		"next page": {answer: at("/referrers/", func(w http.ResponseWriter) bool {
			w.Header().Set("Link", `</v2/ns/thing/manifests/next?last=1>; rel="next"`)
			return send(w, index("application/vnd.cyclonedx+json"))
		}), next: index(bundle), format: bundle, says: "SignatureFormatUnsupported"},
		"no end": {answer: at("/referrers/", func(w http.ResponseWriter) bool {
			w.Header().Set("Link", `<?last=1>; rel="next"`)
			return send(w, index("application/vnd.cyclonedx+json"))
		}), says: "more than 20 pages", not: "SignatureFormatUnsupported"},
		"elsewhere": {answer: at("/referrers/", func(w http.ResponseWriter) bool {
			w.Header().Set("Link", `<https://other.example/v2/ns/thing/manifests/next>; rel="next"`)
			return send(w, index("application/vnd.cyclonedx+json"))
		}), next: index(bundle), says: "no signature exists", not: "SignatureFormatUnsupported"},
		"dead mirror":              {mirror: "127.0.0.1:1", says: "cannot be read", not: "SignatureFormatUnsupported"},
		"mirror of an outage":      {mirrored: true, answer: at("/referrers/", func(w http.ResponseWriter) bool { return status(w, http.StatusServiceUnavailable) }), outage: true, says: "503"},
		"mirror of no permission":  {mirrored: true, answer: at("/referrers/", func(w http.ResponseWriter) bool { return status(w, http.StatusForbidden) }), says: "cannot be read", not: "SignatureFormatUnsupported"},
		"mirror of a bundle":       {mirrored: true, answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, index(bundle)) }), format: bundle, says: "SignatureFormatUnsupported"},
		"mirror of nothing at all": {mirrored: true, says: "no signature exists", not: "cannot be read"},
		"bill only":                {answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, index("application/vnd.cyclonedx+json")) }), says: "no signature exists", not: "SignatureFormatUnsupported"},
		"none":                     {says: "no signature exists", not: "SignatureFormatUnsupported"},
		"rejected":                 {requirement: `{"type":"reject"}`, answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, index(bundle)) }), says: "rejected", not: "SignatureFormatUnsupported"},
		"outage":                   {answer: at("/referrers/", func(w http.ResponseWriter) bool { return status(w, http.StatusInternalServerError) }), outage: true, says: "500"},
		"not allowed":              {answer: at("/referrers/", func(w http.ResponseWriter) bool { return status(w, http.StatusForbidden) }), says: "cannot be read", not: "SignatureFormatUnsupported"},
		"too large":                {answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, bytes.Repeat([]byte(" "), largestReferrers+1)) }), says: "more than", not: "SignatureFormatUnsupported"},
		"no JSON":                  {answer: at("/referrers/", func(w http.ResponseWriter) bool { return send(w, []byte("<html>")) }), says: "no JSON", not: "SignatureFormatUnsupported"},
	} {
		t.Run(test, func(t *testing.T) {
			s := serve(t)
			_, key := sigstoreKey(t)
			if c.requirement == "" {
				c.requirement = fmt.Sprintf(signed, key)
			}
			pinned := s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: test})}})
			s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				path := r.URL.Path
				if strings.HasSuffix(path, "/sha256-"+pinned.Encoded()) {
					path = strings.ReplaceAll(path, pinned.Encoded(), "DIGEST")
				}
				if c.next != nil && strings.HasSuffix(path, "/manifests/next") {
					return send(w, c.next)
				}
				return c.answer != nil && c.answer(w, path)
			})
			var waits atomic.Int64
			options := s.options(&waits)
			options.Registries.Policy = fileOf(t, fmt.Appendf(nil, `{"default":[%s]}`, c.requirement))
			if c.mirror != "" {
				options.Registries.Conf = fileOf(t, fmt.Appendf(nil, "[[registry]]\nprefix=%[1]q\nlocation=%[1]q\n[[registry.mirror]]\nlocation=%[2]q\n", s.host+"/ns/thing", c.mirror+"/ns/thing"))
			}
			if c.mirrored {
				mirror := serve(t)
				mirror.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: test})}})
				options.Registries.Conf = fileOf(t, fmt.Appendf(nil, "[[registry]]\nprefix=%[1]q\nlocation=%[1]q\n[[registry.mirror]]\nlocation=%[2]q\n", s.host+"/ns/thing", mirror.host+"/ns/thing"))
				mirror.trusted(options.Registries.Certs)
			}
			store := opened(t, t.TempDir(), options)
			_, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v1"})
			if err == nil {
				t.Fatal("the image is taken")
			}
			var refused *Refused
			if errors.As(err, &refused) == c.outage || c.outage != (waits.Load() > 0) {
				t.Fatalf("found %v after %d pauses", err, waits.Load())
			}
			if refused != nil && refused.SignatureFormat != c.format {
				t.Errorf("the format is %q, want %q", refused.SignatureFormat, c.format)
			}
			if !strings.Contains(err.Error(), c.says) || c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("the error must say %q and not %q: %v", c.says, c.not, err)
			}
			nothingLeft(t, store.root)
		})
	}
}

// TestSigstoreBundleWithToken: the search for bundles answers the registry's challenge, and sends
// credentials only over TLS.
func TestSigstoreBundleWithToken(t *testing.T) {
	s := serve(t)
	_, key := sigstoreKey(t)
	s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "a"})}})
	var plain atomic.Bool
	s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		switch {
		case r.URL.Path == "/token":
			user, password, _ := r.BasicAuth()
			_ = json.NewEncoder(w).Encode(map[string]string{"token": user + password + r.URL.Query().Get("scope")})
			return true
		case r.Header.Get("Authorization") != "Bearer mepwrepository:ns/thing:pull":
			realm := s.URL + "/token"
			if plain.Load() && strings.Contains(r.URL.Path, "/referrers/") {
				realm = "http://" + s.host + "/token"
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="here"`, realm))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		case strings.Contains(r.URL.Path, "/referrers/"):
			w.Header().Set("Content-Type", specs.MediaTypeImageIndex)
			_, _ = w.Write([]byte(`{"manifests":[{"artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json"}]}`))
			return true
		}
		return false
	})
	options := s.options(new(atomic.Int64))
	options.Registries.Policy = fileOf(t, fmt.Appendf(nil, `{"default":[{"type":"sigstoreSigned","keyPath":%q}]}`, key))
	auth := fileOf(t, fmt.Appendf(nil, `{"auths":{%q:{"auth":"bWU6cHc="}}}`, s.host))
	fetch := func() error {
		_, err := opened(t, t.TempDir(), options).Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v1", Auth: auth})
		return err
	}
	var refused *Refused
	if err := fetch(); !errors.As(err, &refused) || refused.SignatureFormat == "" {
		t.Errorf("the bundle is not found: %v", err)
	}
	plain.Store(true)
	if err := fetch(); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("a token service without TLS is asked: %v", err)
	}
}
