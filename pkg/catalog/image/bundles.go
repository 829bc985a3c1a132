package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/penstock-project/penstock/pkg/signer"
)

const mostBundles = 20

// Rules decide whether the Sigstore bundles of an image suffice.
type Rules interface {
	// Digest changes when the rules or their keys change. Policy is the digest of the policy file.
	Digest() string
	Policy() string
	// String returns the names of the rules.
	String() string
	// Verify returns the signers of the image with this digest. Between two bundles it checks the
	// context.
	Verify(ctx context.Context, bundles [][]byte, digest string) ([]string, error)
}

// verified adds the signers that the rules verify to a record. It refuses an image that the rules
// do not allow, even if the signature policy allows it.
func (o *session) verified(ctx context.Context, unparsed types.UnparsedImage, record *signer.Record) (*signer.Record, error) {
	content, _, err := unparsed.Manifest(ctx)
	if err != nil {
		return nil, remote(err)
	}
	instance, err := manifest.Digest(content)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, referrersTimeout)
	defer cancel()
	signers, err := o.signersOf(ctx, instance)
	if err != nil {
		return nil, o.refusedBy(ctx, err, instance)
	}
	if record == nil {
		record = &signer.Record{}
	} else {
		record.Rule += "; "
	}
	record.Rule += o.rules.String()
	record.Verification = o.rules.Policy()
	record.Signers = append(record.Signers, signers...)
	slices.Sort(record.Signers)
	record.Signers = slices.Compact(record.Signers)
	return record, nil
}

// refusedBy returns a refusal, or an outage if the bundles could not be read.
func (o *session) refusedBy(ctx context.Context, err error, instance digest.Digest) error {
	var away *outage
	if errors.As(err, &away) {
		return &outage{fmt.Errorf("reading its Sigstore bundles: %w", away.err)}
	}
	if ctx.Err() != nil {
		return &outage{fmt.Errorf("reading its Sigstore bundles: %w", ctx.Err())}
	}
	refused := &Refused{Reason: fmt.Sprintf("the verification policy (%s) does not allow it", o.rules), Unverified: true, Err: err}
	if instance != o.digest {
		if _, err := o.signersOf(ctx, o.digest); err == nil {
			refused.Reason += "; its index is signed, and the image in it must be signed, too (cosign sign --recursive)"
		}
	}
	return refused
}

// signersOf requests bundles from the mirrors and then from the registry, until the bundles of one
// source satisfy the rules.
func (o *session) signersOf(ctx context.Context, of digest.Digest) (signers []string, err error) {
	var reasons []error
	err = o.eachSource(func(client *referrersClient) (bool, error) {
		bundles, unread, err := client.read(ctx, of)
		if err != nil {
			return false, err
		}
		found, err := o.rules.Verify(ctx, bundles, of.String())
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			// The source has answered, so this is not an outage.
			reasons = append(reasons, fmt.Errorf("%s: %w", client.host, errors.Join(append([]error{err}, unread...)...)))
			return false, nil
		}
		signers = found
		return true, nil
	})
	if signers != nil {
		return signers, nil
	}
	return nil, errors.Join(append(reasons, err)...)
}

// read reads the Sigstore bundles that refer to a digest. It skips unreadable bundles, and returns
// the reasons in unread.
func (c *referrersClient) read(ctx context.Context, of digest.Digest) (bundles [][]byte, unread []error, err error) {
	found, err := c.bundles(ctx, of, mostBundles+1)
	if err != nil {
		return nil, nil, err
	}
	if len(found) > mostBundles {
		return nil, nil, fmt.Errorf("the image has more than %d Sigstore bundles", mostBundles)
	}
	for _, one := range found {
		content, err := c.artifact(ctx, one.Digest)
		var away *outage
		if errors.As(err, &away) {
			return nil, nil, err
		}
		if err != nil {
			unread = append(unread, err)
			continue
		}
		bundles = append(bundles, content)
	}
	return bundles, unread, nil
}

// artifact returns the only layer of a bundle's artifact.
func (c *referrersClient) artifact(ctx context.Context, of digest.Digest) ([]byte, error) {
	content, err := c.content(ctx, "manifests/", of, specs.MediaTypeImageManifest)
	if err != nil {
		return nil, err
	}
	var found specs.Manifest
	if err := json.Unmarshal(content, &found); err != nil || len(found.Layers) != 1 {
		return nil, fmt.Errorf("referrer %s is no manifest with one layer", of)
	}
	return c.content(ctx, "blobs/", found.Layers[0].Digest, "*/*")
}

func (c *referrersClient) content(ctx context.Context, path string, of digest.Digest, mediaType string) ([]byte, error) {
	if err := of.Validate(); err != nil {
		return nil, fmt.Errorf("the digest %q of a referrer: %w", shortened(of.String()), err)
	}
	response, err := c.get(ctx, path+of.String(), mediaType)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s: %s", response.Request.URL.Path, response.Status)
		if lasting(response.StatusCode) {
			return nil, err
		}
		return nil, &outage{err}
	}
	content, err := io.ReadAll(response.Body)
	if errors.Is(err, errTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, &outage{err}
	}
	if of.Algorithm().FromBytes(content) != of {
		return nil, fmt.Errorf("the registry serves other bytes as %s", of)
	}
	return content, nil
}
