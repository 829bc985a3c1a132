// Package gitops tests that GitOps tools wait for revisions: Helm's Go SDK, and kstatus, which Helm
// and Flux use. It is no benchmark; it is here because this module has these libraries.
package gitops
