// Package verification decides by rules whether the Sigstore bundles (v0.3) of an image suffice:
// its signers, and its build. It makes no requests.
//
// policy.go reads the rules and finds those of an image, verify.go verifies bundles by one rule,
// and provenance.go compares the statements of a build about itself.
package verification
