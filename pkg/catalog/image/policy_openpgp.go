//go:build containers_image_openpgp

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

// checkSignatures asks a policy (containers-policy.json) whether an image may be used.
// OpenPGP is pure Go, by the build tag containers_image_openpgp.
func checkSignatures(ctx context.Context, file string, unparsed types.UnparsedImage) error {
	policy, err := signature.NewPolicyFromFile(file)
	if err != nil {
		return fmt.Errorf("reading the signature policy %s: %w", file, err)
	}
	asked, err := signature.NewPolicyContext(policy)
	if err != nil {
		return err
	}
	defer func() { _ = asked.Destroy() }()
	allowed, err := asked.IsRunningImageAllowed(ctx, unparsed)
	if err == nil && allowed {
		return nil
	}
	var (
		broken signature.PolicyRequirementError
		key    *fs.PathError
	)
	if err != nil && !errors.As(err, &broken) {
		// A signature of another signer is handled like any other refusal. The remaining errors are that
		// signatures, or the keys of the policy, cannot be read: signatures that were read are
		// not read again here.
		if _, unread := unparsed.Signatures(ctx); unread != nil {
			return fmt.Errorf("reading the signatures for the policy %s: %w", file, remote(unread))
		}
		if errors.As(err, &key) {
			return fmt.Errorf("checking signatures by the policy %s: %w", file, err)
		}
	}
	return &Refused{Reason: fmt.Sprintf("the signature policy %s does not allow it", file), Err: err, unsigned: err != nil && strings.Contains(err.Error(), "no signature exists")}
}
