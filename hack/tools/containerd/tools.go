//go:build tools

// Package tools pins containerd and its client, for a real node. The module is apart from that of kubelet:
// each needs versions of its own.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
