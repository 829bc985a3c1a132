// Package gitops has tools that keep a cluster as a repository says wait for revisions:
// Helm's Go SDK, and kstatus, which Helm and Flux judge by. It is no benchmark; it is here
// because this module has these libraries.
package gitops
