//go:build tools

// Package tools pins what runs the tests and reports on them, apart from the
// modules of the product.
package tools

import (
	_ "gotest.tools/gotestsum"
)
