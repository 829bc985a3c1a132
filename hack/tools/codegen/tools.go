//go:build tools

// Package tools pins k8s.io/code-generator for hack/update-codegen.sh, in a
// module of its own so that the generators are no dependency of Penstock. Keep
// its version equal to that of k8s.io/apimachinery in the main go.mod.
package tools

import _ "k8s.io/code-generator"
