// Package node tests Penstock on a real node: a kubelet, containerd and kube-proxy run containers
// in separate Linux namespaces. make node-test runs it. It needs Linux and root.
package node
