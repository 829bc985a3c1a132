// Package node tests Penstock on a real node: a kubelet, containerd and kube-proxy run containers,
// in namespaces of their own. make node-test runs it; it needs Linux and root.
package node
