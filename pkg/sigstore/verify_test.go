package sigstore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

const (
	issuer   = "https://token.actions.githubusercontent.com"
	workflow = "https://github.com/penstock-project/penstock/.github/workflows/release.yaml@refs/tags/v0.1.0"
)

// uncertified is a private instance without a log of certificates: the certificates of the library's
// authority for tests are in none.
type uncertified struct{ *ca.VirtualSigstore }

func (uncertified) CTLogs() map[string]*root.TransparencyLog { return nil }

func TestIdentity(t *testing.T) {
	instance, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	other, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("content")
	signed, err := instance.Sign(workflow, issuer, content)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason  string
		who     Identity
		trusted root.TrustedMaterial
		content string
		want    string
	}{
		"exact":        {reason: "issuer and subject are those of the certificate", who: Identity{Issuer: issuer, Subject: workflow}},
		"regexp":       {reason: "an expression for all tags", who: Identity{Issuer: issuer, SubjectRegexp: `https://github\.com/penstock-project/penstock/.+@refs/tags/v.+`}},
		"issuer":       {reason: "another issuer may give any subject", who: Identity{Issuer: "https://accounts.example.com", Subject: workflow}, want: "expected issuer"},
		"subject":      {reason: "another repository of the same issuer", who: Identity{Issuer: issuer, Subject: strings.Replace(workflow, "/penstock/", "/penstock-evil/", 1)}, want: "expected SAN"},
		"anchored":     {reason: "an expression matches the whole subject, not a part", who: Identity{Issuer: issuer, SubjectRegexp: `https://github\.com/penstock-project/penstock`}, want: "expected SAN"},
		"alternatives": {reason: "each alternative is anchored", who: Identity{Issuer: issuer, SubjectRegexp: `nobody|https://github\.com/pen`}, want: "expected SAN"},
		"authority":    {reason: "a certificate of another authority", who: Identity{Issuer: issuer, Subject: workflow}, trusted: uncertified{other}, want: "log"},
		"content":      {reason: "a signature of other content", who: Identity{Issuer: issuer, Subject: workflow}, content: "other", want: "signature"},
		"certificates": {reason: "a root with a log of certificates needs the certificate to be in it", who: Identity{Issuer: issuer, Subject: workflow}, trusted: instance, want: "certificate timestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			var trusted root.TrustedMaterial = uncertified{instance}
			if c.trusted != nil {
				trusted = c.trusted
			}
			v, err := byIdentity(trusted, c.who)
			if err != nil {
				t.Fatal(err)
			}
			if c.content == "" {
				c.content = string(content)
			}
			result, err := v.verify(signed, verify.WithArtifact(strings.NewReader(c.content)))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%s: %v, want an error with %q", c.reason, err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if found := v.signer(result); found.Subject != workflow || found.Issuer != issuer || found.Time.IsZero() {
				t.Errorf("the signer is %+v", found)
			}
		})
	}
}

// An identity that anybody has protects nothing.
func TestIdentityRefused(t *testing.T) {
	instance, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []Identity{
		{}, {Issuer: issuer}, {Subject: workflow}, {Issuer: issuer, Subject: workflow, SubjectRegexp: workflow},
		{Issuer: issuer, SubjectRegexp: ".*"}, {Issuer: issuer, SubjectRegexp: "^.+$"}, {Issuer: issuer, SubjectRegexp: "(a|.{3,})"}, {Issuer: issuer, SubjectRegexp: "[^@]*"},
		{Issuer: issuer, SubjectRegexp: "("},
	} {
		if _, err := byIdentity(instance, who); err == nil {
			t.Errorf("%+v is allowed", who)
		}
	}
}

// A bundle of the public instance: the library carries it, with its root.
func TestPublicInstance(t *testing.T) {
	const (
		publisher = "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main"
		file      = "sigstore.js@2.0.0-provenance.sigstore.json"
	)
	v, err := byIdentity(data.TrustedRoot(t, "public-good.json"), Identity{Issuer: issuer, Subject: publisher})
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(data.Bundle(t, file))
	if err != nil {
		t.Fatal(err)
	}
	statement, signer, err := v.Statement(content)
	if err != nil {
		t.Fatal(err)
	}
	if signer.Subject != publisher || len(statement.GetSubject()) != 1 {
		t.Errorf("%s attests %v", signer, statement.GetSubject())
	}
	if _, err := v.Blob(content, nil); err == nil || !strings.Contains(err.Error(), "attestation") {
		t.Errorf("an attestation is no signature of a file: %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	for _, key := range []string{"", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := ByKey([]byte(key)); err == nil {
			t.Errorf("the key %q is taken", key)
		}
	}
	if _, err := ByIdentity([]byte("{}"), Identity{Issuer: issuer, Subject: workflow}); err == nil {
		t.Error("an empty trusted root is taken")
	}
	for _, signed := range []string{"", "{}", `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.9+json"}`, strings.Repeat("a", LargestBundle+1)} {
		if _, err := parse([]byte(signed)); err == nil {
			t.Errorf("the bundle %.40q is taken", signed)
		}
	}
}
