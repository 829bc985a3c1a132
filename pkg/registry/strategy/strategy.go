// Package strategy contains the shared parts of the strategies of all stored kinds.
package strategy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Cluster is the common part of the strategies of cluster-scoped kinds.
type Cluster struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NamespaceScoped is false: revisions and plans are cluster-scoped.
func (Cluster) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false, as for most kinds: a PUT only updates. Server-side apply can still
// create.
func (Cluster) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate lets a PUT without resourceVersion pass, as core kinds do.
func (Cluster) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize does nothing: the Prepare methods do everything.
func (Cluster) Canonicalize(runtime.Object) {}

// ResetFields returns the fields of a version that writes cannot set.
func ResetFields(version schema.GroupVersion, paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): fieldpath.NewSet(paths...)}
}
