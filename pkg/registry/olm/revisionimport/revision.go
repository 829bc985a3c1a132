package revisionimport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// maxOwners bounds the owners that an archive can make Penstock look up in the cluster. A chain has
// at most one owner.
const maxOwners = 8

// maxRequesterBytes bounds the stored name of a requester.
const maxRequesterBytes = 1024

// revision converts a revision of the archive to the object that a client would send, with inline
// manifests. It also returns the revision's past.
func (in *incoming) revision(ctx context.Context, item archive.Item) (*olm.ClusterExtensionRevision, *clusterextensionrevision.Past, error) {
	name := olm.RevisionName(in.name, item.Revision.Number)
	versioned := &v1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: item.Revision.Labels, Annotations: maps.Clone(item.Revision.Annotations),
	}}
	// These annotations applied to the original cluster. A revision that is only imported deletes
	// nothing.
	for _, key := range []string{v1alpha1.AllowCRDDeletionAnnotation, v1alpha1.TakeOverFromAnnotation, v1alpha1.AcknowledgeDeletionAnnotation, v1alpha1.ApproveAnnotation, v1alpha1.ApproveNotBeforeAnnotation, v1alpha1.ReleaseHoldAnnotation} {
		delete(versioned.Annotations, key)
	}
	maps.DeleteFunc(versioned.Annotations, func(key, _ string) bool { return clusterextensionrevision.IsAcknowledgement(key) })
	decoder := json.NewDecoder(bytes.NewReader(item.Revision.Spec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&versioned.Spec); err != nil {
		return nil, nil, badArchive(fmt.Errorf("reading spec of %s: %w", name, err))
	}
	if versioned.Spec.Revision != item.Revision.Number {
		return nil, nil, badArchive(fmt.Errorf("%s has the revision number %d in its spec", name, versioned.Spec.Revision))
	}
	if in.paused && versioned.Spec.LifecycleState != v1alpha1.LifecycleStateArchived {
		versioned.Spec.LifecycleState = v1alpha1.LifecycleStatePaused
	}
	disarm(ctx, name, &versioned.Spec)
	if err := inline(&versioned.Spec, item.Objects); err != nil {
		return nil, nil, badArchive(fmt.Errorf("%s: %w", name, err))
	}
	for i := range versioned.Spec.Previous {
		versioned.Spec.Previous[i].UID = ""
	}
	versioned.OwnerReferences = in.keepOwners(ctx, item.Revision.Owners)
	in.deps.Scheme.Default(versioned)
	revision := &olm.ClusterExtensionRevision{}
	if err := in.deps.Scheme.Convert(versioned, revision, nil); err != nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("converting %s: %w", name, err))
	}
	return revision, in.past(item.Revision, revision), nil
}

// disarm removes the automatic rollback of an imported revision. An automatic rollback has no
// requester, so the user who enables it needs the rights to all its effects. These depend on the
// other revisions of the chain, which are not stored yet. For a paused revision, the rights are
// checked when it is resumed.
func disarm(ctx context.Context, name string, spec *v1alpha1.ClusterExtensionRevisionSpec) {
	if spec.OnFailure != v1alpha1.OnFailureRollback || spec.LifecycleState == v1alpha1.LifecycleStateArchived ||
		spec.LifecycleState == v1alpha1.LifecycleStatePaused {
		return
	}
	spec.OnFailure = v1alpha1.OnFailureNone
	warning.AddWarning(ctx, "", fmt.Sprintf("%s will not roll back by itself: if it should, set spec.onFailure to %s again", name, v1alpha1.OnFailureRollback))
}

// past returns the past of the revision. This cluster determines itself whether an active revision
// is complete. For an archived revision, the archive's result counts.
func (in *incoming) past(from *archive.Revision, revision *olm.ClusterExtensionRevision) *clusterextensionrevision.Past {
	past := &clusterextensionrevision.Past{CreatedAt: from.CreatedAt, RequestedBy: from.RequestedBy}
	past.RequestedBy = past.RequestedBy[:min(len(past.RequestedBy), maxRequesterBytes)]
	of := from.Annotations[v1alpha1.RollbackOfAnnotation]
	if chain, _, ok := olm.ChainOf(of); ok && chain == in.name {
		past.RollbackOf = of
	}
	if from.Succeeded && revision.Spec.LifecycleState == olm.LifecycleStateArchived {
		past.SucceededAt = from.CompletedAt
		if past.SucceededAt.IsZero() {
			past.SucceededAt = from.CreatedAt
		}
	}
	return past
}

// inline replaces digests by their manifests. Digests of Secrets use the key of the original store;
// this store computes its own.
func inline(spec *v1alpha1.ClusterExtensionRevisionSpec, objects []manifest.Object) error {
	byDigest := make(map[string]manifest.Object, len(objects))
	for _, object := range objects {
		byDigest[string(object.Digest)] = object
	}
	used := map[string]bool{}
	for p := range spec.Phases {
		for e := range spec.Phases[p].Objects {
			entry := &spec.Phases[p].Objects[e]
			object, found := byDigest[entry.Digest]
			if entry.Object != nil || !found {
				return fmt.Errorf("the archive has no manifest of %s %s/%s with digest %s", entry.Kind, entry.Namespace, entry.Name, entry.Digest)
			}
			used[entry.Digest] = true
			entry.Object, entry.Size = &v1alpha1.Manifest{Raw: object.JSON}, 0
			if object.IsSecret() {
				entry.Digest = ""
			}
		}
	}
	if len(used) < len(objects) {
		return fmt.Errorf("the archive has %d manifests that belong to no phase", len(objects)-len(used))
	}
	return nil
}

// owners caches which owners exist.
type owners map[types.UID]error

// keepOwners returns references to owners that exist in this cluster with the uid in the archive.
// With other owners, garbage collection would delete the revision. keepOwners warns once about each
// missing owner.
func (in *incoming) keepOwners(ctx context.Context, from []archive.Owner) []metav1.OwnerReference {
	var kept []metav1.OwnerReference
	for _, owner := range from {
		reference := metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
		if owner.Controller {
			reference.Controller = &owner.Controller
		}
		missing, asked := in.owners[owner.UID]
		if !asked {
			missing = in.exists(ctx, reference)
			if in.owners == nil {
				in.owners = owners{}
			}
			in.owners[owner.UID] = missing
		}
		if missing == nil {
			kept, in.owned = append(kept, reference), true
			continue
		}
		if !asked {
			warning.AddWarning(ctx, "", fmt.Sprintf("%s: its revisions are imported without their owner %s %s: %v",
				in.name, cmp.Or(owner.Kind, "?"), owner.Name, missing))
		}
	}
	return kept
}

func (in *incoming) exists(ctx context.Context, owner metav1.OwnerReference) error {
	if len(in.owners) >= maxOwners {
		return errors.New("it is not known whether it exists")
	}
	_, err := in.deps.Owners.Generation(ctx, owner)
	return err
}
