//go:build containers_image_openpgp

package image

import (
	"context"
	"errors"
	"fmt"

	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

// checkSignatures asks a policy (containers-policy.json) whether an image may be used. What
// it asks for is pure Go, by the build tag containers_image_openpgp.
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
	var broken signature.PolicyRequirementError
	switch {
	case errors.As(err, &broken), err == nil && !allowed:
		return &Refused{Reason: fmt.Sprintf("the signature policy %s does not allow it", file), Err: err}
	case err != nil:
		return fmt.Errorf("checking signatures by the policy %s: %w", file, err)
	}
	return nil
}
