// Package store measures the size of a revision in the store, for versions of real operators: as
// delta packs, whole packs, gzip, and Helm's Secrets. It also measures the time of writes and
// reads. `make bench SUITE=store` runs it; docs/reference/performance.md has the results.
package store
