// Package internal has the schema that apply configurations are read with. It is
// generated, but for this file: see hack/update-codegen.sh.
package internal
