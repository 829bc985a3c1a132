// Package rollout measures the cost of a rollout: Penstock beside Helm's Go SDK, `kubectl apply
// --server-side`, and a minimal loop with one server-side apply per object. Every case has its own
// kube-apiserver. Besides the time, it measures processor time, memory and requests of client and
// server. `make bench SUITE=rollout` runs it; docs/reference/performance.md has the results.
package rollout
