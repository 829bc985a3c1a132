// Package v1alpha1 has the apply configurations of our types. It is generated, but
// for this file: see hack/update-codegen.sh.
package v1alpha1
