// Package verification decides by rules whether the Sigstore bundles (v0.3) of an image suffice:
// its signers, and its build. It sends no requests.
//
// policy.go reads the rules and finds the rules of an image. verify.go verifies bundles by one
// rule. provenance.go compares the statements of a build.
package verification
