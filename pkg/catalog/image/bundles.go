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

// mostBundles bounds the Sigstore bundles of an image that are read.
const mostBundles = 20

// Rules decide whether the Sigstore bundles of an image are enough.
type Rules interface {
	// Digest is another one when other rules, or other keys, apply. Policy is that of the file.
	Digest() string
	Policy() string
	// String names the rules.
	String() string
	// Verify returns who signed the image with a digest. It ends with the context, between two bundles.
	Verify(ctx context.Context, bundles [][]byte, digest string) ([]string, error)
}

// verified adds to a record what the rules verify. An image that they do not allow is refused, whatever
// the signature policy says.
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

// refusedBy is a refusal, or the outage because of which nobody knows.
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

// signersOf requests bundles from the mirrors and the registry, until those of one source satisfy the
// rules.
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
			// The registry has answered: this is no failure to ask it.
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

// read reads the Sigstore bundles that refer to a digest. One that cannot be read is none; the reasons
// say why.
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

// artifact is the only layer of an artifact that has a bundle.
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

// content returns content and verifies that it has the requested digest.
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
