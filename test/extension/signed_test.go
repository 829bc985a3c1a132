//go:build integration

package extension_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/penstock-project/penstock/hack/release/sign"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/release"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/sigstore"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// mustBeSigned is the package whose bundles need a signature.
const mustBeSigned = "loop-signed"

// newSigningKey returns a new key.
func newSigningKey(t *testing.T) *sign.Key {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	signing, err := sign.ReadKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content}), "")
	if err != nil {
		t.Fatal(err)
	}
	return signing
}

// verificationPolicy writes a policy that requires Sigstore bundles by a key for one package. It
// returns the file.
func verificationPolicy(t *testing.T, host string, by *sign.Key) string {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	for name, content := range map[string][]byte{
		policy:                        fmt.Appendf(nil, "rules:\n- match: %s/bundles/%s\n  anyOf: [{key: key.pub}]\n", host, mustBeSigned),
		filepath.Join(dir, "key.pub"): by.Public,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return policy
}

// sign attaches a Sigstore bundle to the image of a bundle.
func (w shared) sign(by *sign.Key, one bundle) {
	w.t.Helper()
	_, digest, _ := strings.Cut(one.Ref, "@sha256:")
	made, err := by.Statement(&intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: release.SignatureType, Predicate: &structpb.Struct{},
		Subject: []*intoto.ResourceDescriptor{{Digest: map[string]string{"sha256": digest}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := registry.Attach(w.t.Context(), w.images.Dir, one.Ref, sigstore.BundleType, made); err != nil {
		w.t.Fatal(err)
	}
}

// Signed: the verification policy requires a signature by its key, and other bundles are refused.
// An installed bundle stays. Once the image is signed, it is installed.
func signed(w shared) {
	if w.name != mustBeSigned {
		w.t.Fatalf("the policy is about %s, and the scenario is %s", mustBeSigned, w.name)
	}
	first := w.push(bundle{Package: w.name, Version: "1.0.0"})
	w.sign(w.signs, first)
	next := w.push(bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})
	w.publish(w.name, first, next)
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "it is signed", installed("1.0.0"))
	key, err := sigstore.ByKey(w.signs.Public)
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.awaitRevision(w.name+"-1", "it was rolled out", succeeded)
	record := signer.Parse(r.Annotations[olmv1alpha1.VerifiedAnnotation])
	if record == nil || len(record.Signers) != 1 || record.Signers[0] != "key "+key.Key || !strings.HasPrefix(record.Rule, "rules[0] ") {
		w.t.Errorf("the revision records %s", record)
	}

	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0"))
	refused := func(why string) {
		w.t.Helper()
		w.awaitExtension(w.name, "it is refused", is("Ready=False/SignatureVerificationFailed: "+why, "Installed=True/Succeeded", "Progressing=True/Retrying: "+next.Ref))
		w.hasRevision(w.name+"-2", false)
	}
	refused("the image has no Sigstore bundle")
	w.says(w.answers(w.admin(), w.name, "SignatureVerificationFailed"), "no Sigstore bundle")

	w.sign(newSigningKey(w.t), next)
	w.again(alice, w.name)
	refused("the signature is not by the key " + key.Key)

	w.sign(w.signs, next)
	w.again(alice, w.name)
	w.awaitExtension(w.name, "it is signed", installed("1.1.0"))
	w.MustKubectl("delete", "clusterextension", w.name)
}
