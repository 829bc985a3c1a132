// Package openapi has the OpenAPI definitions of our types. It is generated, but for
// this file: see hack/update-codegen.sh.
package openapi
