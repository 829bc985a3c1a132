//go:build tools

// Package tools pins the programs of a real node, kubelet and kube-proxy, at the
// version of the default control plane. They are not part of its module: who runs
// no real node builds and verifies nothing of them.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
