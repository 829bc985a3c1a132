//go:build tools

// Package tools pins the programs of a Kubernetes 1.36 control plane, so that
// hack/build-tools.sh can compile them from the module proxy alone.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
