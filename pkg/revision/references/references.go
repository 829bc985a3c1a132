// Package references reads the objects that revisions refer to. It needs neither the engine nor the
// store, so programs without them can use it.
package references

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Of returns the references of a revision's objects, in order.
func Of(revision *olmv1alpha1.ClusterExtensionRevision) []manifest.Ref {
	var out []manifest.Ref
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			out = append(out, To(object))
		}
	}
	return out
}

// To returns the reference of an entry of a revision.
func To(object olmv1alpha1.RevisionObject) manifest.Ref {
	// The API accepts only well-formed versions. An unparsable version has no group, and no kind is
	// found for it.
	version, _ := schema.ParseGroupVersion(object.APIVersion)
	return manifest.Ref{
		ID:      manifest.ID{Group: version.Group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name},
		Version: version.Version,
		Digest:  manifest.Digest(object.Digest),
	}
}
