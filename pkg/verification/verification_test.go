package verification

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	trustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	recorded "github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/sigstore"
)

const (
	issuer   = "https://token.example.com"
	workflow = "https://git.example.com/team/lamp/.github/workflows/release.yml@refs/tags/v1.0.0"
	image    = "registry.example.com/team/lamp:v1"
)

var digest = "sha256:" + strings.Repeat("ab", 32)

// authority is a separate Sigstore instance.
type authority struct {
	*ca.VirtualSigstore
	t *testing.T
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, t}
}

// rootOf is a trusted root with the authorities and logs of several instances.
type rootOf struct {
	identities, entries, certificates, stamps *authority
}

// root returns the instance's trusted root. Its certificates are in no log.
func (a *authority) root() []byte {
	return rootOf{identities: a, entries: a, stamps: a}.content()
}

func (r rootOf) content() []byte {
	t := r.identities.t
	t.Helper()
	logs := func(found map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
		for id, log := range found {
			var err error
			if log.ID, err = hex.DecodeString(id); err != nil { // the library has the ID as text there
				t.Fatal(err)
			}
			log.SignatureHashFunc = crypto.SHA256
		}
		return found
	}
	var ofCertificates map[string]*root.TransparencyLog
	if r.certificates != nil {
		ofCertificates = logs(r.certificates.CTLogs())
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, r.identities.FulcioCertificateAuthorities(), ofCertificates, r.stamps.TimestampingAuthorities(), logs(r.entries.RekorLogs()))
	if err != nil {
		t.Fatal(err)
	}
	content, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

type attestation struct {
	subject, predicateType, predicate, digest string
	after                                     time.Duration
	// stamped bundles have a timestamp. untimed bundles have a log entry without a time.
	stamped, untimed bool
}

func signature() attestation {
	return attestation{subject: workflow, predicateType: signatureType, predicate: "{}", digest: digest, after: 5 * time.Minute, stamped: true}
}

func provenance(predicate string) attestation {
	a := signature()
	a.predicateType, a.predicate = "https://slsa.dev/provenance/v1", predicate
	return a
}

func (a attestation) with(change func(*attestation)) attestation {
	change(&a)
	return a
}

func (a attestation) statement() []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":%s}`,
		strings.TrimPrefix(a.digest, "sha256:"), a.predicateType, a.predicate)
}

func (a *authority) bundle(one attestation) []byte {
	a.t.Helper()
	at := time.Now().Add(one.after)
	entity, err := a.AttestAtTime(one.subject, issuer, one.statement(), at, true)
	if err != nil {
		a.t.Fatal(err)
	}
	verified, err := entity.VerificationContent()
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := entity.SignatureContent()
	if err != nil {
		a.t.Fatal(err)
	}
	made := &protobundle.Bundle{
		MediaType: sigstore.BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{Certificate: &common.X509Certificate{RawBytes: verified.Certificate().Raw}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: envelope(a.t, signed.EnvelopeContent().RawEnvelope())},
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		a.t.Fatal(err)
	}
	entry := entries[0].TransparencyLogEntry()
	entry.KindVersion = &rekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
	if one.untimed {
		// As in Rekor v2, the log entry has no time.
		entry.IntegratedTime = 0
	} else {
		promise, err := a.RekorSignPayload(tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
			LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId())})
		if err != nil {
			a.t.Fatal(err)
		}
		entry.InclusionPromise = &rekor.InclusionPromise{SignedEntryTimestamp: promise}
	}
	made.VerificationMaterial.TlogEntries = []*rekor.TransparencyLogEntry{entry}
	if one.stamped {
		stamps, err := entity.Timestamps()
		if err != nil {
			a.t.Fatal(err)
		}
		made.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{Rfc3161Timestamps: []*common.RFC3161SignedTimestamp{{SignedTimestamp: stamps[0]}}}
	}
	return marshalled(a.t, made)
}

func envelope(t *testing.T, raw *dsse.Envelope) *protodsse.Envelope {
	t.Helper()
	payload, err := raw.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := base64.StdEncoding.DecodeString(raw.Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	return &protodsse.Envelope{PayloadType: raw.PayloadType, Payload: payload, Signatures: []*protodsse.Signature{{Sig: signed}}}
}

func changed(t *testing.T, signed []byte, change func(*protobundle.Bundle)) []byte {
	t.Helper()
	parsed := &protobundle.Bundle{}
	if err := protojson.Unmarshal(signed, parsed); err != nil {
		t.Fatal(err)
	}
	change(parsed)
	return marshalled(t, parsed)
}

// forOther changes a statement so that it is about another image.
func forOther(of *protobundle.Bundle) {
	envelope := of.GetDsseEnvelope()
	envelope.Payload = bytes.ReplaceAll(envelope.Payload, []byte(strings.TrimPrefix(digest, "sha256:")), bytes.Repeat([]byte("cd"), 32))
}

func marshalled(t *testing.T, made *protobundle.Bundle) []byte {
	t.Helper()
	content, err := protojson.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// keyPair returns a public key in PEM, and the bundle of a statement that it verifies.
func keyPair(t *testing.T, one attestation) (public, signed []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	hashed := crypto.SHA256.New()
	hashed.Write(dsse.PAE(sigstore.StatementType, one.statement()))
	signature, err := ecdsa.SignASN1(rand.Reader, key, hashed.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: content}), marshalled(t, &protobundle.Bundle{
		MediaType: sigstore.BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &common.PublicKeyIdentifier{}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{PayloadType: sigstore.StatementType, Payload: one.statement(), Signatures: []*protodsse.Signature{{Sig: signature}}}},
	})
}

func policyFile(t *testing.T, content string, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	files["policy.yaml"] = []byte(content)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "policy.yaml")
}

func TestVerify(t *testing.T) {
	const (
		exactly = "issuer: " + issuer + ", subject: " + workflow
		tags    = "issuer: " + issuer + `, subjectRegExp: "https://git\\.example\\.com/team/lamp/.*@refs/tags/v.*"`
		built   = `, provenance: {builder: "https://builder.example.com/v1", repository: "https://git.example.com/team/lamp"}`
		slsa    = `{"buildDefinition":{"externalParameters":{"workflow":{"repository":"REPOSITORY"}}},"runDetails":{"builder":{"id":"https://builder.example.com/v1"}}}`
	)
	const signed = "identity https://git.example.com/team/lamp/.github/workflows/release.yml of " + issuer
	ours, theirs := newAuthority(t), newAuthority(t)
	key, byKey := keyPair(t, signature())
	_, byOther := keyPair(t, signature())
	other := "sha256:" + strings.Repeat("cd", 32)
	for name, tc := range map[string]struct {
		reason  string
		signer  string
		more    string
		digest  string
		bundles [][]byte
		want    []string
		err     string
	}{
		"identity":     {reason: "issuer and subject are those of the rule", signer: exactly, bundles: [][]byte{ours.bundle(signature())}, want: []string{signed}},
		"expression":   {reason: "the whole subject matches", signer: tags, bundles: [][]byte{ours.bundle(signature())}, want: []string{signed}},
		"untimed log":  {reason: "the time is that of the timestamp: the log has none", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.untimed = true }))}, want: []string{signed}},
		"no log entry": {reason: "nobody else can see what was signed", signer: exactly, bundles: [][]byte{changed(t, ours.bundle(signature()), func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil })}, err: "log entries"},
		"entry of another": {reason: "the entry in the log is of another signature", signer: exactly, bundles: [][]byte{changed(t, ours.bundle(signature()), func(b *protobundle.Bundle) {
			other := &protobundle.Bundle{}
			if err := protojson.Unmarshal(ours.bundle(signature()), other); err != nil {
				t.Fatal(err)
			}
			b.VerificationMaterial.TlogEntries = other.VerificationMaterial.TlogEntries
		})}, err: "transparency log signature does not match"},
		"changed":             {reason: "the statement was signed about another image", signer: exactly, digest: other, bundles: [][]byte{changed(t, ours.bundle(signature()), forOther)}, err: "does not match envelope payload hash"},
		"changed for key":     {reason: "the statement was signed about another image", signer: "key: key.pub", digest: other, bundles: [][]byte{changed(t, byKey, forOther)}, err: "or of other content"},
		"no timestamp":        {reason: "the time is that of the log", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.stamped = false }))}, want: []string{signed}},
		"no time":             {reason: "nobody says when it was signed", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.untimed, a.stamped = true, false }))}, err: "timestamp"},
		"outside":             {reason: "the certificate was not valid at that time", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.after, a.stamped = 30*time.Minute, false }))}, err: "certificate"},
		"another subject":     {reason: "the right issuer is not enough", signer: "issuer: " + issuer + ", subject: https://git.example.com/team/lamp/x", bundles: [][]byte{ours.bundle(signature())}, err: "SAN"},
		"another issuer":      {reason: "the right subject is not enough", signer: "issuer: https://other.example.com, subject: " + workflow, bundles: [][]byte{ours.bundle(signature())}, err: "issuer"},
		"evil repository":     {reason: "an expression does not match the beginning alone", signer: "issuer: " + issuer + `, subjectRegExp: "https://git\\.example\\.com/team/lamp"`, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.subject = "https://git.example.com/team/lamp-evil" }))}, err: "SAN"},
		"evil prefix":         {reason: "an expression does not match the end alone", signer: "issuer: " + issuer + `, subjectRegExp: "https://git\\.example\\.com/team/lamp"`, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.subject = "https://evil.example.com/?https://git.example.com/team/lamp" }))}, err: "SAN"},
		"another image":       {reason: "the bundle is about one digest", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.digest = other }))}, err: "digest"},
		"another root":        {reason: "an authority that is not trusted; the message names the root", signer: exactly, bundles: [][]byte{theirs.bundle(signature())}, err: "the trusted root root.json"},
		"a later one":         {reason: "one good bundle is enough", signer: exactly, bundles: [][]byte{[]byte("{"), theirs.bundle(signature()), ours.bundle(signature())}, want: []string{signed}},
		"no bundle":           {reason: "nobody signed", signer: exactly, err: "no Sigstore bundle"},
		"no JSON":             {reason: "bytes of a stranger", signer: exactly, bundles: [][]byte{[]byte("PNG")}, err: "reading the bundle"},
		"attestation":         {reason: "a bill of materials is no signature", signer: exactly, bundles: [][]byte{ours.bundle(signature().with(func(a *attestation) { a.predicateType = "https://cyclonedx.org/bom" }))}, err: `type "https://cyclonedx.org/bom"`},
		"key":                 {reason: "by the key, without a log", signer: "key: key.pub", bundles: [][]byte{byKey}, want: []string{"key "}},
		"another key":         {reason: "by another key", signer: "key: key.pub", bundles: [][]byte{byOther}, err: "not by the key"},
		"identity for key":    {reason: "a certificate is no key", signer: "key: key.pub", bundles: [][]byte{ours.bundle(signature())}, err: "identity"},
		"key for identity":    {reason: "a key is no identity", signer: exactly, bundles: [][]byte{byKey}, err: "trusted root"},
		"provenance":          {reason: "builder and repository are those of the rule", signer: exactly, more: built, bundles: [][]byte{ours.bundle(provenance(strings.Replace(slsa, "REPOSITORY", "https://git.example.com/team/lamp", 1)))}, want: []string{signed}},
		"provenance of git":   {reason: "a URI of Git with a revision", signer: exactly, more: built, bundles: [][]byte{ours.bundle(provenance(strings.Replace(slsa, "REPOSITORY", "git+https://git.example.com/team/lamp.git@refs/tags/v1", 1)))}, want: []string{signed}},
		"other repository":    {reason: "the beginning is not enough", signer: exactly, more: built, bundles: [][]byte{ours.bundle(provenance(strings.Replace(slsa, "REPOSITORY", "https://git.example.com/team/lamp-evil", 1)))}, err: `names the repository "https://git.example.com/team/lamp-evil"`},
		"other builder":       {reason: "somebody's laptop", signer: exactly, more: built, bundles: [][]byte{ours.bundle(provenance(strings.Replace(slsa, "/v1", "/v2", 1)))}, err: `names the builder "https://builder.example.com/v2"`},
		"signature for build": {reason: "a signature says nothing about the build", signer: exactly, more: built, bundles: [][]byte{ours.bundle(signature())}, err: "a provenance (SLSA v1 or v0.2) is expected"},
		"provenance unsigned": {reason: "the provenance is by somebody else", signer: exactly, more: built, bundles: [][]byte{theirs.bundle(provenance(strings.Replace(slsa, "REPOSITORY", "https://git.example.com/team/lamp", 1)))}, err: "trusted root"},
	} {
		t.Run(name, func(t *testing.T) {
			path := policyFile(t, fmt.Sprintf("trustedRoot: root.json\nrules: [{match: registry.example.com/team, anyOf: [{%s}]%s}]", tc.signer, tc.more), map[string][]byte{"root.json": ours.root(), "key.pub": key})
			policy, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.For(image, "").Verify(t.Context(), tc.bundles, cmp.Or(tc.digest, digest))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: got %v, %v, want an error with %q", tc.reason, got, err, tc.err)
				}
				return
			}
			if err != nil || len(got) != len(tc.want) || !strings.HasPrefix(got[0], tc.want[0]) {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// log2 is a log of Rekor v2. It signs no times, and its checkpoints have only the name of its host.
type log2 struct {
	host string
	key  ed25519.PrivateKey
}

func newLog2(t *testing.T) *log2 {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &log2{host: "log2.example.com", key: key}
}

func (l *log2) public() ed25519.PublicKey { return l.key.Public().(ed25519.PublicKey) }

func (l *log2) trustedBy(t *testing.T, content []byte) []byte {
	t.Helper()
	trusted := &trustroot.TrustedRoot{}
	if err := protojson.Unmarshal(content, trusted); err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKIXPublicKey(l.public())
	if err != nil {
		t.Fatal(err)
	}
	trusted.Tlogs = append(trusted.Tlogs, &trustroot.TransparencyLogInstance{
		BaseUrl: "https://" + l.host, HashAlgorithm: common.HashAlgorithm_SHA2_256, LogId: &common.LogId{KeyId: l.keyHash()},
		PublicKey: &common.PublicKey{RawBytes: key, KeyDetails: common.PublicKeyDetails_PKIX_ED25519, ValidFor: &common.TimeRange{Start: timestamppb.New(time.Now().Add(-time.Hour))}},
	})
	made, err := protojson.Marshal(trusted)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// keyHash returns the key's hash in a checkpoint (https://c2sp.org/signed-note).
func (l *log2) keyHash() []byte {
	sum := sha256.Sum256(append([]byte(l.host+"\n\x01"), l.public()...))
	return sum[:4]
}

// enter replaces a bundle's log entries with the only entry of this log: the hash of the signed
// content, in canonical JSON (RFC 8785).
func (l *log2) enter(b *protobundle.Bundle) {
	signed := b.GetDsseEnvelope()
	hashed := sha256.Sum256(dsse.PAE(signed.GetPayloadType(), signed.GetPayload()))
	body := fmt.Appendf(nil, `{"apiVersion":"0.0.2","kind":"hashedrekord","spec":{"hashedRekordV002":{"data":{"algorithm":"SHA2_256","digest":%q},`+
		`"signature":{"content":%q,"verifier":{"keyDetails":"PKIX_ECDSA_P256_SHA_256","x509Certificate":{"rawBytes":%q}}}}}}`,
		base64.StdEncoding.EncodeToString(hashed[:]), base64.StdEncoding.EncodeToString(signed.GetSignatures()[0].GetSig()),
		base64.StdEncoding.EncodeToString(b.GetVerificationMaterial().GetCertificate().GetRawBytes()))
	// RFC 6962: the root of a tree of one leaf is the hash of that leaf.
	top := sha256.Sum256(append([]byte{0}, body...))
	text := fmt.Sprintf("%s\n1\n%s\n", l.host, base64.StdEncoding.EncodeToString(top[:]))
	checkpoint := fmt.Sprintf("%s\n\u2014 %s %s\n", text, l.host, base64.StdEncoding.EncodeToString(append(l.keyHash(), ed25519.Sign(l.key, []byte(text))...)))
	b.VerificationMaterial.TlogEntries = []*rekor.TransparencyLogEntry{{
		LogId: &common.LogId{KeyId: l.keyHash()}, KindVersion: &rekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"}, CanonicalizedBody: body,
		InclusionProof: &rekor.InclusionProof{RootHash: top[:], TreeSize: 1, Checkpoint: &rekor.Checkpoint{Envelope: checkpoint}},
	}}
}

// TestRekor2: an entry in a trusted log of Rekor v2 counts together with a timestamp.
func TestRekor2(t *testing.T) {
	ours, log := newAuthority(t), newLog2(t)
	untimed := signature().with(func(a *attestation) { a.untimed = true })
	entered := func(by *log2, one attestation) []byte { return changed(t, ours.bundle(one), by.enter) }
	trusted := log.trustedBy(t, ours.root())
	forged := newLog2(t)
	for name, tc := range map[string]struct {
		reason string
		root   []byte
		bundle []byte
		err    string
	}{
		"trusted":      {reason: "the log has the signature, and an authority its time", root: trusted, bundle: entered(log, untimed)},
		"no timestamp": {reason: "the log says nothing about the time", root: trusted, bundle: entered(log, untimed.with(func(a *attestation) { a.stamped = false })), err: "timestamp"},
		"not trusted":  {reason: "the root is older than the log", root: ours.root(), bundle: entered(log, untimed), err: "not enough verified log entries"},
		"forged": {reason: "a checkpoint by another key in the name of the log", root: trusted, bundle: changed(t, entered(forged, untimed), func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].LogId.KeyId = log.keyHash()
		}), err: "checkpoint signature"},
		"dsse": {reason: "the kind of entry that Rekor v2 had first", root: trusted, bundle: changed(t, entered(log, untimed), func(b *protobundle.Bundle) {
			entry := b.VerificationMaterial.TlogEntries[0]
			entry.KindVersion.Kind = "dsse"
			entry.CanonicalizedBody = []byte(`{"apiVersion":"0.0.2","kind":"dsse","spec":{"dsseV002":{}}}`)
		}), err: "not a recognizable Rekor v1 or Rekor v2 type"},
		"of another": {reason: "the entry is of another signature", root: trusted, bundle: changed(t, entered(log, untimed), func(b *protobundle.Bundle) {
			other := &protobundle.Bundle{}
			if err := protojson.Unmarshal(entered(log, untimed), other); err != nil {
				t.Fatal(err)
			}
			b.VerificationMaterial.TlogEntries = other.VerificationMaterial.TlogEntries
		}), err: "verifying inclusion"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := policyOf(t, tc.root).For(image, "").Verify(t.Context(), [][]byte{tc.bundle}, digest); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.err)
			}
		})
	}
}

// policyOf returns a policy that trusts one identity by a trusted root.
func policyOf(t *testing.T, trusted []byte) *Policy {
	t.Helper()
	policy, err := Load(policyFile(t, "trustedRoot: root.json\nrules: [{match: registry.example.com, anyOf: [{issuer: "+issuer+", subject: "+workflow+"}]}]", map[string][]byte{"root.json": trusted}))
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestExpired: a certificate is valid for minutes, and an image is used for years. A signature is
// valid only if a log or a timestamp shows that the certificate was valid when it signed.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := newAuthority(t)
		stamped := ours.bundle(signature().with(func(a *attestation) { a.untimed = true }))
		logged := ours.bundle(signature().with(func(a *attestation) { a.stamped = false }))
		neither := ours.bundle(signature().with(func(a *attestation) { a.untimed, a.stamped = true, false }))
		policy := policyOf(t, ours.root())

		time.Sleep(30 * time.Minute) // the certificate is valid for 10 minutes
		late := newAuthority(t)
		restamped := changed(t, neither, func(b *protobundle.Bundle) {
			stamp, err := late.TimestampResponse(b.GetDsseEnvelope().GetSignatures()[0].GetSig())
			if err != nil {
				t.Fatal(err)
			}
			b.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{Rfc3161Timestamps: []*common.RFC3161SignedTimestamp{{SignedTimestamp: stamp}}}
		})
		lateStamps := policyOf(t, rootOf{identities: ours, entries: ours, stamps: late}.content())

		time.Sleep(10 * 365 * 24 * time.Hour) // longer than any authority here is valid
		for name, tc := range map[string]struct {
			reason string
			policy *Policy
			bundle []byte
			err    string
		}{
			"timestamp":       {reason: "the certificate was valid at the time of the stamp", policy: policy, bundle: stamped},
			"log":             {reason: "the certificate was valid at the time of the log", policy: policy, bundle: logged},
			"neither":         {reason: "somebody may have found the key since", policy: policy, bundle: neither, err: "threshold not met"},
			"late timestamp":  {reason: "the certificate had expired when it was stamped", policy: lateStamps, bundle: restamped, err: "leaf certificate"},
			"other authority": {reason: "a stamp of an authority that is not trusted", policy: policy, bundle: restamped, err: "threshold not met"},
		} {
			if _, err := tc.policy.For(image, "").Verify(t.Context(), [][]byte{tc.bundle}, digest); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %s: got %v, want an error with %q", name, tc.reason, err, tc.err)
			}
		}
	})
}

// TestCertificateLog: if the trusted root has certificate logs, a certificate must be in one.
// Otherwise an authority could issue certificates secretly.
func TestCertificateLog(t *testing.T) {
	ours := newAuthority(t)
	bundles := [][]byte{ours.bundle(signature())}
	if _, err := policyOf(t, ours.root()).For(image, "").Verify(t.Context(), bundles, digest); err != nil {
		t.Errorf("without a log of certificates: %v", err)
	}
	logged := rootOf{identities: ours, entries: ours, stamps: ours, certificates: ours}.content()
	if _, err := policyOf(t, logged).For(image, "").Verify(t.Context(), bundles, digest); err == nil || !strings.Contains(err.Error(), "SCT") {
		t.Errorf("a certificate without an SCT: %v", err)
	}
}

// TestPublicBundle: the embedded root verifies a bundle of Sigstore's public instance: its
// certificate (expired in 2023), its SCT and its log entry. The bundle is from the npm package
// sigstore@2.0.0, in format v0.3. Its digest is a SHA-512, which images do not have.
func TestPublicBundle(t *testing.T) {
	content, err := os.ReadFile("testdata/public.sigstore.json")
	if err != nil {
		t.Fatal(err)
	}
	of, err := hex.DecodeString("46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c")
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := verifier(trustedRoot)
	if err != nil {
		t.Fatal(err)
	}
	const (
		actions = "https://token.actions.githubusercontent.com"
		release = "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main"
	)
	for name, tc := range map[string]struct{ reason, issuer, subject, want string }{
		"identity":        {reason: "the workflow has signed it", issuer: actions, subject: release},
		"another subject": {reason: "another branch of the workflow", issuer: actions, subject: release + "2", want: "SAN"},
		"another issuer":  {reason: "another issuer", issuer: "https://accounts.google.com", subject: release, want: "issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			identity, err := verify.NewShortCertificateIdentity(tc.issuer, "", tc.subject, "")
			if err != nil {
				t.Fatal(err)
			}
			parsed := &bundle.Bundle{}
			if err := parsed.UnmarshalJSON(content); err != nil {
				t.Fatal(err)
			}
			if _, err := trusted.Verify(parsed, verify.NewPolicy(verify.WithArtifactDigest("sha512", of), verify.WithCertificateIdentity(identity))); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestChangedIdentity: after a change of the rules, a new identity is accepted and the old one is
// not. Their records differ, so the diff of two revisions shows it.
func TestChangedIdentity(t *testing.T) {
	const other = "https://git.example.com/others/lamp/.github/workflows/release.yml@refs/tags/v1.0.0"
	ours := newAuthority(t)
	byUs, byOthers := ours.bundle(signature()), ours.bundle(signature().with(func(a *attestation) { a.subject = other }))
	rules := func(subject string) *Rules {
		t.Helper()
		policy, err := Load(policyFile(t, "trustedRoot: root.json\nrules: [{match: registry.example.com, anyOf: [{issuer: "+issuer+", subject: "+subject+"}]}]", map[string][]byte{"root.json": ours.root()}))
		if err != nil {
			t.Fatal(err)
		}
		return policy.For(image, "")
	}
	before, after := rules(workflow), rules(other)
	if before.Digest() == after.Digest() {
		t.Error("cached images are not verified again")
	}
	record := func(by *Rules, bundle []byte) string {
		t.Helper()
		signers, err := by.Verify(t.Context(), [][]byte{bundle}, digest)
		if err != nil {
			t.Fatal(err)
		}
		return (&recorded.Record{Rule: by.String(), Verification: by.Policy(), Signers: signers}).String()
	}
	if _, err := after.Verify(t.Context(), [][]byte{byUs}, digest); err == nil || !strings.Contains(err.Error(), "SAN") {
		t.Errorf("the identity of the rules before still signs: %v", err)
	}
	want := "image: signed by identity https://git.example.com/others/lamp/.github/workflows/release.yml of " + issuer + ", was signed by identity https://git.example.com/team/lamp/.github/workflows/release.yml of " + issuer
	if lost := recorded.Lost(record(before, byUs), record(after, byOthers)); lost != want {
		t.Errorf("lost is %q, want %q", lost, want)
	}
}

// TestEmbeddedRoot: the default trusted root has the logs and authorities of its day.
func TestEmbeddedRoot(t *testing.T) {
	const of = "6494e21ea73fa7ee769f85f57d5a3e6a08725eae1e38c755fc3517c9e6bc0b66"
	if sum := sha256.Sum256(trustedRoot); hex.EncodeToString(sum[:]) != of {
		t.Error("trusted_root.json is another file: set sigstore.RootDate to its day, and change the digest here")
	}
	trusted, err := root.NewTrustedRootFromJSON(trustedRoot)
	if err != nil {
		t.Fatal(err)
	}
	if len(trusted.RekorLogs()) < 2 || len(trusted.CTLogs()) == 0 || len(trusted.TimestampingAuthorities()) == 0 || len(trusted.FulcioCertificateAuthorities()) == 0 {
		t.Error("it lacks a log or an authority")
	}
	if _, err := verifier(trustedRoot); err != nil {
		t.Error(err)
	}
}

func TestFor(t *testing.T) {
	const signer = "anyOf: [{issuer: a, subject: b}]"
	path := policyFile(t, `rules:
- {match: registry.example.com, `+signer+`}
- {match: registry.example.com/team, `+signer+`}
- {match: "registry.example.com/team/lamp:v1", `+signer+`}
- {match: registry.example.com/team, catalog: community, `+signer+`}
- {catalog: anywhere, `+signer+`}`, map[string][]byte{})
	policy, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reason, reference, catalog, want string }{
		"longest":           {reason: "of several the longest", reference: "registry.example.com/team/oil:v1", want: `rules[1] "registry.example.com/team"`},
		"whole parts":       {reason: "team-evil is not team", reference: "registry.example.com/team-evil/lamp:v1", want: `rules[0] "registry.example.com"`},
		"tag":               {reason: "the beginning of a tag", reference: "registry.example.com/team/lamp:v1.2", want: `rules[2] "registry.example.com/team/lamp:v1"`},
		"other tag":         {reason: "of another tag", reference: "registry.example.com/team/lamp:v2", want: `rules[1] "registry.example.com/team"`},
		"digest":            {reason: "a digest has no tag", reference: "registry.example.com/team/lamp@" + digest, want: `rules[1] "registry.example.com/team"`},
		"repository itself": {reason: "the repository is the prefix", reference: "registry.example.com/team:v1", want: `rules[1] "registry.example.com/team"`},
		"port":              {reason: "another registry of the same host", reference: "registry.example.com:5000/team/lamp:v1"},
		"upper case":        {reason: "hosts have no case", reference: "Registry.Example.com/team/oil:v1", want: `rules[1] "registry.example.com/team"`},
		"usual port":        {reason: "the usual port leads to the same registry", reference: "registry.example.com:443/team/oil:v1", want: `rules[1] "registry.example.com/team"`},
		"catalog":           {reason: "both rules apply", reference: "registry.example.com/team/oil:v1", catalog: "community", want: `rules[1] "registry.example.com/team", rules[3] "registry.example.com/team" of catalog community`},
		"other catalog":     {reason: "a rule of another catalog does not", reference: "registry.example.com/team/oil:v1", catalog: "operators", want: `rules[1] "registry.example.com/team"`},
		"any image":         {reason: "an empty match is any image", reference: "mirror.example.com/x:v1", catalog: "anywhere", want: `rules[4] "" of catalog anywhere`},
		"none":              {reason: "no rule is about it", reference: "mirror.example.com/x:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := policy.For(tc.reference, tc.catalog); found != nil {
				got = found.String()
			}
			if got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	const signer = "anyOf: [{issuer: a, subject: b}]"
	for name, tc := range map[string]struct{ reason, content, want string }{
		"no rules":        {reason: "a policy without rules is a mistake", content: "{}", want: "rules has 0 entries"},
		"unknown field":   {reason: "a typo must not loosen", content: "rules: [{matches: x, " + signer + "}]", want: "matches"},
		"no signer":       {reason: "nobody could sign", content: "rules: [{match: x}]", want: "anyOf has 0 entries"},
		"half":            {reason: "an issuer signs for everybody", content: "rules: [{match: x, anyOf: [{issuer: a}]}]", want: "one of subject and subjectRegExp"},
		"both":            {reason: "which one counts?", content: "rules: [{match: x, anyOf: [{issuer: a, subject: b, subjectRegExp: c}]}]", want: "one of subject and subjectRegExp"},
		"key and subject": {reason: "which one counts?", content: "rules: [{match: x, anyOf: [{key: a, subject: b}]}]", want: "one is allowed"},
		"any subject":     {reason: "anybody has a subject", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: .*}]}]", want: "anybody satisfies it"},
		"any URL":         {reason: "anybody has a URL", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: 'https://.+'}]}]", want: "anybody satisfies it"},
		"any address":     {reason: "anybody has an address", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: '.+@.+'}]}]", want: "anybody satisfies it"},
		"any workflow":    {reason: "anybody has a workflow", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: '.*/release.yml@refs/heads/main'}]}]", want: "anybody satisfies it"},
		"any issuer":      {reason: "anybody has an issuer", content: "rules: [{match: x, anyOf: [{issuerRegExp: '.*', subject: b}]}]", want: "anybody satisfies it"},
		"alternatives":    {reason: "the anchors hold the whole expression", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: 'b|.*'}]}]", want: "anybody satisfies it"},
		"no expression":   {reason: "it cannot be compiled", content: "rules: [{match: x, anyOf: [{issuer: a, subjectRegExp: '('}]}]", want: "subjectRegExp"},
		"glob":            {reason: "a match is a prefix", content: "rules: [{match: 'x/*', " + signer + "}]", want: "the prefix of a reference"},
		"twice":           {reason: "which one counts?", content: "rules: [{match: x, " + signer + "}, {match: x, " + signer + "}]", want: "are those of rules[0]"},
		"no key":          {reason: "the file is not there", content: "rules: [{match: x, anyOf: [{key: gone.pub}]}]", want: "gone.pub"},
		"no PEM":          {reason: "the file is no key", content: "rules: [{match: x, anyOf: [{key: policy.yaml}]}]", want: "public key"},
		"no root":         {reason: "the file is no root", content: "trustedRoot: policy.yaml\nrules: [{match: x, " + signer + "}]", want: "the trusted root policy.yaml"},
		"half a build":    {reason: "a builder builds for everybody", content: "rules: [{match: x, " + signer + ", provenance: {builder: b}}]", want: "provenance needs builder and repository"},
		"large":           {reason: "larger than any policy", content: "#" + strings.Repeat("x", largestFile), want: "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(policyFile(t, tc.content, map[string][]byte{})); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestDigest: a verified image is verified again after a change of any file.
func TestDigest(t *testing.T) {
	key, _ := keyPair(t, signature())
	other, _ := keyPair(t, signature())
	of := func(key []byte) string {
		policy, err := Load(policyFile(t, "rules: [{match: registry.example.com, anyOf: [{key: key.pub}]}]", map[string][]byte{"key.pub": key}))
		if err != nil {
			t.Fatal(err)
		}
		return policy.For(image, "").Digest()
	}
	if first, again := of(key), of(key); first != again || first == of(other) {
		t.Error("the digest is not that of the files")
	}
}

// FuzzVerify: untrusted bundles do not end the process.
func FuzzVerify(f *testing.F) {
	path := filepath.Join(f.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte("rules: [{anyOf: [{issuer: a, subject: b}]}]"), 0o600); err != nil {
		f.Fatal(err)
	}
	policy, err := Load(path)
	if err != nil {
		f.Fatal(err)
	}
	empty, err := json.Marshal(map[string]any{"mediaType": sigstore.BundleType})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":""},"tlogEntries":[{}]},"dsseEnvelope":{"signatures":[{}]}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		_ = (&bundle.Bundle{}).UnmarshalJSON(content)
		if signers, err := policy.For(image, "").Verify(t.Context(), [][]byte{content}, digest); err == nil {
			t.Errorf("%s signed", signers)
		}
	})
}
