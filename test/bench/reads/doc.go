// Package reads measures what reading costs: revisions in Penstock, through
// kube-apiserver's aggregator and directly, beside the same records as custom
// resources of that kube-apiserver, in the same run on the same machine. It is
// run by `make bench SUITE=reads`; docs/reference/performance.md has the results.
package reads
