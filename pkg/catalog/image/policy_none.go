//go:build !containers_image_openpgp

package image

import (
	"context"

	"go.podman.io/image/v5/types"

	"github.com/penstock-project/penstock/pkg/signer"
)

// checkSignatures refuses every policy. Without the build tag containers_image_openpgp, the library
// would need a C library to verify signatures.
func checkSignatures(_ context.Context, file string, _ types.UnparsedImage) (*signer.Record, error) {
	return nil, refuse("", "there is a signature policy (%s), and this build cannot verify signatures: build with -tags containers_image_openpgp", file)
}
