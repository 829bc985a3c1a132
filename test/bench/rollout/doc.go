// Package rollout measures what rolling out costs: Penstock beside Helm's Go SDK,
// `kubectl apply --server-side`, and the least that is possible, a loop of one
// server-side apply for each object. Every case has a kube-apiserver of its own,
// and the client's and the server's processor time, memory and requests are
// counted as well as the time. It is run by `make bench SUITE=rollout`;
// docs/reference/performance.md has the results.
package rollout
