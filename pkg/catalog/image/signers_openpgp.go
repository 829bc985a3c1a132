//go:build containers_image_openpgp

package image

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// mostKeys limits the keys of one requirement that are tried, to find the one that signed.
const mostKeys = 50

// ruleFor returns the name and the requirements of the policy that apply to an image, with the
// library's lookup order.
func ruleFor(policy *signature.Policy, ref types.ImageReference) (name string, requirements signature.PolicyRequirements) {
	transport := ref.Transport().Name()
	for _, scope := range append(append([]string{ref.PolicyConfigurationIdentity()}, ref.PolicyConfigurationNamespaces()...), "") {
		if found, is := policy.Transports[transport][scope]; is {
			return fmt.Sprintf("%s %q", transport, scope), found
		}
	}
	return "default", policy.Default
}

// requirement has the fields of policy.json that identify the signer.
type requirement struct {
	Type     string   `json:"type"`
	KeyPath  string   `json:"keyPath"`
	KeyPaths []string `json:"keyPaths"`
	KeyData  []byte   `json:"keyData"`
	KeyDatas [][]byte `json:"keyDatas"`
	Fulcio   *struct {
		OIDCIssuer   string `json:"oidcIssuer"`
		SubjectEmail string `json:"subjectEmail"`
	} `json:"fulcio"`
	PKI *struct {
		SubjectEmail    string `json:"subjectEmail"`
		SubjectHostname string `json:"subjectHostname"`
	} `json:"pki"`
}

// signersOf returns the keys and identities that signed an image. The requirements have already
// allowed it. The library does not report which of several keys matched, so each key is tried
// alone.
func signersOf(ctx context.Context, requirements signature.PolicyRequirements, unparsed types.UnparsedImage) ([]string, error) {
	var all []string
	for _, one := range requirements {
		content, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		var parsed requirement
		if err := json.Unmarshal(content, &parsed); err != nil {
			return nil, err
		}
		if parsed.Type != "signedBy" && parsed.Type != "sigstoreSigned" {
			continue
		}
		signers, err := parsed.signers(ctx, content, unparsed)
		if err != nil {
			return nil, err
		}
		all = append(all, signers...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// candidate is a key that may have signed.
type candidate struct {
	name string
	data []byte
}

func (r *requirement) signers(ctx context.Context, content []byte, unparsed types.UnparsedImage) ([]string, error) {
	switch {
	case r.Fulcio != nil:
		return []string{fmt.Sprintf("identity %s of %s", r.Fulcio.SubjectEmail, r.Fulcio.OIDCIssuer)}, nil
	case r.PKI != nil:
		return []string{"certificate of " + r.PKI.SubjectEmail + r.PKI.SubjectHostname}, nil
	}
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	if len(keys) == 1 {
		return []string{keys[0].name}, nil
	}
	if len(keys) > mostKeys {
		return []string{fmt.Sprintf("one of %d keys", len(keys))}, nil
	}
	var found []string
	for _, key := range keys {
		if signed, err := r.signedBy(ctx, content, key.data, unparsed); err != nil {
			return nil, err
		} else if signed {
			found = append(found, key.name)
		}
	}
	return found, nil
}

// signedBy reports whether the requirement with this single key allows the image.
func (r *requirement) signedBy(ctx context.Context, content, key []byte, unparsed types.UnparsedImage) (bool, error) {
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return false, err
	}
	for _, several := range []string{"keyPath", "keyPaths", "keyDatas"} {
		delete(fields, several)
	}
	fields["keyData"] = key
	policy, err := json.Marshal(map[string]any{"default": []any{fields}})
	if err != nil {
		return false, err
	}
	alone, err := signature.NewPolicyFromBytes(policy)
	if err != nil {
		return false, err
	}
	asked, err := signature.NewPolicyContext(alone)
	if err != nil {
		return false, err
	}
	defer func() { _ = asked.Destroy() }()
	allowed, _ := asked.IsRunningImageAllowed(ctx, unparsed) // the error is only the reason
	return allowed, ctx.Err()
}

func (r *requirement) keys() ([]candidate, error) {
	files := r.KeyDatas
	if len(r.KeyData) > 0 {
		files = append(files, r.KeyData)
	}
	paths := r.KeyPaths
	if r.KeyPath != "" {
		paths = append(paths, r.KeyPath)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, content)
	}
	var keys []candidate
	for _, file := range files {
		found, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// parse parses a key file: one key in PEM, or an OpenPGP keyring.
func (r *requirement) parse(content []byte) ([]candidate, error) {
	if r.Type == "sigstoreSigned" {
		public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
		if err != nil {
			return nil, err
		}
		name, err := sigstore.KeyName(public)
		return []candidate{{"key " + name, content}}, err
	}
	ring, err := openpgp.ReadKeyRing(bytes.NewReader(content))
	if err != nil {
		if ring, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(content)); err != nil {
			return nil, err
		}
	}
	var keys []candidate
	for _, entity := range ring {
		var alone bytes.Buffer
		if err := entity.Serialize(&alone); err != nil {
			return nil, err
		}
		keys = append(keys, candidate{"OpenPGP key " + hex.EncodeToString(entity.PrimaryKey.Fingerprint), alone.Bytes()})
	}
	return keys, nil
}
