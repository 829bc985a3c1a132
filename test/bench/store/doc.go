// Package store measures what a revision takes in the store, over the versions of real
// operators: as packs that are deltas, beside packs that are whole, gzip, and the Secrets
// of Helm; and how long writing and reading it takes. It is run by `make bench SUITE=store`;
// docs/reference/performance.md has the results.
package store
