// Package host is the only door to a target cluster: every request that changes
// or reads an object of a rollout goes through it, carries its precondition, and
// is limited and counted here.
package host

import (
	"k8s.io/apimachinery/pkg/types"
)

// ApplyOptions of one server-side apply.
type ApplyOptions struct {
	// FieldManager that the fields will belong to.
	FieldManager string
	// CreateOnly makes the request fail with a 409 when the object exists.
	CreateOnly bool
	// UID and ResourceVersion are the object as it was judged; the request fails
	// with a 409 (or 422) when it is another one, or changed meanwhile. Both are
	// required unless CreateOnly is set.
	UID             types.UID
	ResourceVersion string
	// DryRun asks the server for the outcome without storing it.
	DryRun bool
}

// Precondition of a delete: the object as it was judged. Both are required.
type Precondition struct {
	UID             types.UID
	ResourceVersion string
}
