package adopt

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// PlanUndoOLMv1 plans to give an extension back to operator-controller. It only reads. It fails
// while operator-controller runs, and when the cluster has content that operator-controller did not
// install.
func (a *Adopter) PlanUndoOLMv1(ctx context.Context, namespace, name string) (*Return, error) {
	if err := a.stopped(ctx, operatorController); err != nil {
		return nil, err
	}
	extensions, err := a.extensions(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	found, err := a.originOf(ctx, namespace, extensions[0])
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("operator-controller has no revisions and no release of the ClusterExtension %s", name)
	}
	revisions, err := a.list(ctx, name)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(revisions, func(a, b v1alpha1.ClusterExtensionRevision) int { return cmp.Compare(a.Spec.Revision, b.Spec.Revision) })
	back := &Return{Request: Request{Namespace: namespace, Release: name, Extension: name}, newOwner: found.newOwner, owner: found.owner}
	back.newOwner.Join = found.joined
	for i := range revisions {
		one := &revisions[i]
		from := one.Annotations[v1alpha1.AdoptedFromAnnotation]
		back.Revisions = append(back.Revisions, one.Name)
		if one.Spec.LifecycleState != v1alpha1.LifecycleStateArchived && one.DeletionTimestamp.IsZero() && from != found.from {
			return nil, fmt.Errorf("%s has other content than %s, which operator-controller considers installed: first go back to that content, with kubectl penstock rollback", one.Name, found.from)
		}
	}
	if found.release != nil && found.release.Annotations[supersededBy] == name {
		back.release.marked = append(back.release.marked, *found.release)
	}
	// These are all objects, so that an interrupted undo also restores the missing owners.
	back.refs = found.revisions[0].refs()
	for _, ref := range back.refs {
		back.Objects = append(back.Objects, ref.ID)
	}
	return back, nil
}

func (a *Adopter) restoreOwner(ctx context.Context, back *Return, ref manifest.Ref, live *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if back.owner == nil || slices.ContainsFunc(live.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == back.owner.UID }) {
		return live, nil
	}
	precondition := targetclient.Precondition{UID: live.UID, ResourceVersion: live.ResourceVersion}
	return a.target.SetOwners(ctx, ref, precondition, targetclient.Owners{
		References: append(slices.Clone(live.OwnerReferences), *back.owner), FieldManager: back.newOwner.Manager,
	})
}

// joined merges the entries of the new owner into one entry: the inherited fields and the restored
// owner reference. Entries that cannot be parsed are returned unchanged; the server refuses them
// then.
func (o *origin) joined(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	newOwner := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return o.inherits(entry) && entry.Operation == o.newOwner.Operation
	})
	if newOwner < 0 {
		return entries
	}
	all := fieldpath.NewSet()
	for i, entry := range entries {
		if !o.inherits(entry) || entry.APIVersion != entries[newOwner].APIVersion {
			continue
		}
		set, err := managedfields.FieldSet(entry)
		if err != nil {
			return entries
		}
		if i != newOwner && o.newOwner.Operation == metav1.ManagedFieldsOperationApply {
			// An update owns the whole list, an apply only its own list items.
			set = set.Difference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "ownerReferences")))
		}
		all = all.Union(set)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return entries
	}
	var out []metav1.ManagedFieldsEntry
	for i, entry := range entries {
		switch {
		case i == newOwner:
			entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		case o.inherits(entry) && entry.APIVersion == entries[newOwner].APIVersion:
			continue
		}
		out = append(out, entry)
	}
	return out
}

func (o *origin) inherits(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == o.newOwner.Manager && entry.Subresource == ""
}
