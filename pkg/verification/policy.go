package verification

import (
	"crypto/sha256"
	_ "embed" // the default trusted root
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// trustedRoot is that of Sigstore's public instance, with the logs Rekor v1 and v2.
//
//go:embed trusted_root.json
var trustedRoot []byte

const (
	largestFile = 1 << 20
	// mostRules bounds the rules of a policy, and mostSigners the signers of a rule.
	mostRules, mostSigners = 1000, 20
)

type file struct {
	// TrustedRoot is a file with authorities and logs for identities, in the format
	// application/vnd.dev.sigstore.trustedroot+json. Empty means the root of Sigstore's public
	// instance.
	TrustedRoot string `json:"trustedRoot"`
	Rules       []Rule `json:"rules"`
}

// Rule has the requirements for the images that it matches.
type Rule struct {
	// Match is a prefix of references: whole parts of a repository, or a repository, a colon and the
	// first part of a tag. Empty matches every image.
	Match string `json:"match"`
	// Catalog restricts the rule to the image of a ClusterCatalog and to images that this catalog
	// offers.
	Catalog string `json:"catalog"`
	// AnyOf are keys and identities. One of them must have signed.
	AnyOf []Signer `json:"anyOf"`
	// Provenance, if set, requires an attestation of the build instead of a signature.
	Provenance *Provenance `json:"provenance"`
}

// Signer is a key or an identity.
type Signer struct {
	// Key is a file with a public key in PEM.
	Key string `json:"key"`
	// Issuer and Subject are fields of a certificate. The expressions must match the whole field.
	Issuer        string `json:"issuer"`
	IssuerRegExp  string `json:"issuerRegExp"`
	Subject       string `json:"subject"`
	SubjectRegExp string `json:"subjectRegExp"`
}

// Provenance has the required statements of an attestation of the build.
type Provenance struct {
	// Builder is the builder's id, and Repository the repository of the source.
	Builder    string `json:"builder"`
	Repository string `json:"repository"`
}

// Policy has rules that were read and checked.
type Policy struct {
	rules []rule
	// roots verifies certificates. rootName is its name.
	roots    *verify.Verifier
	rootName string
	digest   string
}

type rule struct {
	Rule
	number  int
	signers []signer
}

// signer is a checked Signer: a key or an identity.
type signer struct {
	key      *sigstore.Verifier
	identity *verify.CertificateIdentity
}

// Load reads a policy, and the files that it names, from its folder.
func Load(path string) (*Policy, error) {
	p, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("reading the verification policy %s: %w", path, err)
	}
	return p, nil
}

func load(path string) (*Policy, error) {
	sum := sha256.New()
	read := func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return readFile(name, sum)
	}
	content, err := readFile(path, sum)
	if err != nil {
		return nil, err
	}
	var written file
	if err := yaml.UnmarshalStrict(content, &written); err != nil {
		return nil, err
	}
	if len(written.Rules) == 0 || len(written.Rules) > mostRules {
		return nil, fmt.Errorf("rules has %d entries, 1 to %d are allowed", len(written.Rules), mostRules)
	}
	p := &Policy{rootName: "the embedded trusted root of " + sigstore.RootDate}
	roots := trustedRoot
	if written.TrustedRoot != "" {
		p.rootName = "the trusted root " + written.TrustedRoot
		if roots, err = read(written.TrustedRoot); err != nil {
			return nil, fmt.Errorf("trustedRoot: %w", err)
		}
	}
	if p.roots, err = verifier(roots); err != nil {
		return nil, fmt.Errorf("%s: %w", p.rootName, err)
	}
	var errs []error
	for n, one := range written.Rules {
		checked, err := check(one, read)
		if err != nil {
			errs = append(errs, fmt.Errorf("rules[%d]: %w", n, err))
			continue
		}
		checked.number = n
		for _, before := range p.rules {
			if before.Match == one.Match && before.Catalog == one.Catalog {
				errs = append(errs, fmt.Errorf("rules[%d]: match %q and catalog %q are those of rules[%d]", n, one.Match, one.Catalog, before.number))
			}
		}
		p.rules = append(p.rules, checked)
	}
	p.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return p, errors.Join(errs...)
}

func readFile(name string, sum hash.Hash) ([]byte, error) {
	found, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	content, err := io.ReadAll(io.LimitReader(found, largestFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > largestFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, largestFile)
	}
	fmt.Fprintf(sum, "%d\n", len(content))
	sum.Write(content)
	return content, nil
}

// verifier returns the verifier of certificates and their times. If the trusted root has
// certificate logs, each certificate must be in a log.
func verifier(content []byte) (*verify.Verifier, error) {
	trusted, err := root.NewTrustedRootFromJSON(content)
	if err != nil {
		return nil, err
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	return verify.NewVerifier(trusted, options...)
}

func check(one Rule, read func(string) ([]byte, error)) (rule, error) {
	checked := rule{Rule: one}
	if strings.ContainsAny(one.Match, "*@ ") || strings.HasPrefix(one.Match, "/") {
		return checked, fmt.Errorf("match %q: the prefix of a reference is expected, such as registry.example.com/team", one.Match)
	}
	if len(one.AnyOf) == 0 || len(one.AnyOf) > mostSigners {
		return checked, fmt.Errorf("anyOf has %d entries, 1 to %d are allowed", len(one.AnyOf), mostSigners)
	}
	for n, written := range one.AnyOf {
		found, err := checkSigner(written, read)
		if err != nil {
			return checked, fmt.Errorf("anyOf[%d]: %w", n, err)
		}
		checked.signers = append(checked.signers, found)
	}
	if p := one.Provenance; p != nil && (p.Builder == "" || p.Repository == "") {
		return checked, errors.New("provenance needs builder and repository")
	}
	return checked, nil
}

func checkSigner(written Signer, read func(string) ([]byte, error)) (signer, error) {
	if written.Key != "" {
		if written != (Signer{Key: written.Key}) {
			return signer{}, errors.New("key and an identity are both set, one is allowed")
		}
		content, err := read(written.Key)
		if err != nil {
			return signer{}, fmt.Errorf("key: %w", err)
		}
		key, err := sigstore.ByKey(content)
		return signer{key: key}, err
	}
	if (written.Issuer == "") == (written.IssuerRegExp == "") || (written.Subject == "") == (written.SubjectRegExp == "") {
		return signer{}, errors.New("key, or one of issuer and issuerRegExp and one of subject and subjectRegExp are expected")
	}
	issuer, err := anchored("issuerRegExp", written.IssuerRegExp)
	if err != nil {
		return signer{}, err
	}
	subject, err := anchored("subjectRegExp", written.SubjectRegExp)
	if err != nil {
		return signer{}, err
	}
	identity, err := verify.NewShortCertificateIdentity(written.Issuer, issuer, written.Subject, subject)
	return signer{identity: &identity}, err
}

// strangers are issuers and subjects that a useful expression does not match.
var strangers = []string{"", "x", "somebody@stranger.invalid", "https://stranger.invalid", "https://stranger.invalid/somebody/something/.github/workflows/release.yml@refs/heads/main"}

// anchored returns an expression that matches whole texts only. It refuses an expression that
// matches strangers.
func anchored(field, expression string) (string, error) {
	if expression == "" {
		return "", nil
	}
	whole, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	if slices.ContainsFunc(strangers, whole.MatchString) {
		return "", fmt.Errorf("%s %q: anybody satisfies it, name whom you trust", field, expression)
	}
	return whole.String(), nil
}

// Rules are the rules that apply to an image.
type Rules struct {
	policy *Policy
	rules  []rule
}

// For returns the rules for a reference of the form registry/repository:tag or …@digest that a
// catalog has offered; nil if none applies. Up to two rules apply. One is the longest match among
// the rules for all catalogs. The other is the longest match among the rules for this catalog.
func (p *Policy) For(reference, catalog string) *Rules {
	var general, own *rule
	for i := range p.rules {
		one := &p.rules[i]
		if !matches(one.Match, reference) {
			continue
		}
		switch {
		case one.Catalog == "" && (general == nil || len(one.Match) > len(general.Match)):
			general = one
		case one.Catalog != "" && one.Catalog == catalog && (own == nil || len(one.Match) > len(own.Match)):
			own = one
		}
	}
	found := &Rules{policy: p}
	for _, one := range []*rule{general, own} {
		if one != nil {
			found.rules = append(found.rules, *one)
		}
	}
	if len(found.rules) == 0 {
		return nil
	}
	return found
}

// matches is true for whole parts of the repository, and for the first part of a tag.
func matches(prefix, reference string) bool {
	prefix, reference = canonical(prefix), canonical(reference)
	repository, _, _ := strings.Cut(reference, "@")
	tag := ""
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:colon], repository[colon+1:]
	}
	if prefix == "" || repository == prefix || strings.HasPrefix(repository+"/", strings.TrimSuffix(prefix, "/")+"/") {
		return true
	}
	rest, ok := strings.CutPrefix(prefix, repository+":")
	return ok && tag != "" && strings.HasPrefix(tag, rest)
}

// canonical replaces the different spellings of a registry's host with one spelling.
func canonical(reference string) string {
	host, rest, slash := strings.Cut(reference, "/")
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	if !slash {
		return host
	}
	return host + "/" + rest
}

// Digest returns the digest of the policy, the files that it names, and the applicable rules.
func (r *Rules) Digest() string {
	digest := r.policy.digest
	for _, one := range r.rules {
		digest += fmt.Sprintf(" %d", one.number)
	}
	return digest
}

// Policy returns the digest of the policy and of the files that it names.
func (r *Rules) Policy() string { return r.policy.digest }

// String returns the names of the rules.
func (r *Rules) String() string {
	var names []string
	for _, one := range r.rules {
		name := fmt.Sprintf("rules[%d] %q", one.number, one.Match)
		if one.Catalog != "" {
			name += " of catalog " + one.Catalog
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
