//go:build containers_image_openpgp

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/penstock-project/penstock/pkg/signer"
)

// checkSignatures checks an image against a policy (containers-policy.json), and returns its
// signers. The build tag containers_image_openpgp selects OpenPGP in pure Go.
func checkSignatures(ctx context.Context, file string, unparsed types.UnparsedImage) (*signer.Record, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the signature policy: %w", err)
	}
	policy, err := signature.NewPolicyFromBytes(content)
	if err != nil {
		return nil, fmt.Errorf("reading the signature policy %s: %w", file, err)
	}
	asked, err := signature.NewPolicyContext(policy)
	if err != nil {
		return nil, err
	}
	defer func() { _ = asked.Destroy() }()
	allowed, err := asked.IsRunningImageAllowed(ctx, unparsed)
	if err == nil && allowed {
		rule, requirements := ruleFor(policy, unparsed.Reference())
		signers, err := signersOf(ctx, requirements, unparsed)
		if err != nil {
			return nil, fmt.Errorf("naming the signers by the policy %s: %w", file, err)
		}
		return &signer.Record{Policy: digest.FromBytes(content).String(), Rule: rule, Signers: signers}, nil
	}
	var (
		broken signature.PolicyRequirementError
		key    *fs.PathError
	)
	if err != nil && !errors.As(err, &broken) {
		// A signature of another signer is a refusal like any other. The remaining errors are
		// unreadable signatures or keys. Signatures that were read already are cached here.
		if _, unread := unparsed.Signatures(ctx); unread != nil {
			return nil, fmt.Errorf("reading the signatures for the policy %s: %w", file, remote(unread))
		}
		if errors.As(err, &key) {
			return nil, fmt.Errorf("checking signatures by the policy %s: %w", file, err)
		}
	}
	return nil, &Refused{Reason: fmt.Sprintf("the signature policy %s does not allow it", file), Unverified: true, Err: err, unsigned: err != nil && strings.Contains(err.Error(), "no signature exists")}
}
