// Package gitops tests how GitOps tools wait for revisions: Helm's Go SDK, and kstatus, which Helm
// and Flux use. It is not a benchmark. It is here because this module has these libraries.
package gitops
