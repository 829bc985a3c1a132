//go:build tools

// Package tools pins the programs of a real node, kubelet and kube-proxy. They are not part of
// the module of the control plane: without a real node nothing of them is built or verified.
// Kubernetes supports nodes that are older than their control plane.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
