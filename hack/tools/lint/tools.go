//go:build tools

// Package tools pins the linters that hack/verify-staticcheck.sh runs, apart
// from the modules of the product.
package tools

import (
	_ "honnef.co/go/tools/cmd/staticcheck"
)
