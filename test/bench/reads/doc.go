// Package reads measures the cost of reading: revisions in Penstock, through kube-apiserver's
// aggregator and directly, and equal records as custom resources of the same kube-apiserver. `make
// bench SUITE=reads` runs it; docs/reference/performance.md has the results.
package reads
