// Package verification decides by rules whether the Sigstore bundles (v0.3) of an image are enough: who
// signed it, and where it was built. It makes no requests.
//
// policy.go reads the rules and finds those of an image, verify.go verifies bundles by one rule, and
// provenance.go compares what a build says about itself.
package verification
