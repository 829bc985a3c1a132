package privilege

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmvalidation "github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// chainState is the state of a chain before a change.
type chainState struct {
	others []olm.ClusterExtensionRevision
	// inventory lists the objects that the chain has in the cluster, or is about to have.
	inventory []ownedObject
}

// ownedObject is an object that the chain has in the cluster, or may have.
type ownedObject struct {
	manifest.Ref
	// revision is the number of the revision whose content the object has.
	revision int64
}

// ownedBy returns the objects of a revision as if all existed, without create-only objects: the
// chain never owns or deletes those.
func ownedBy(revision *olm.ClusterExtensionRevision) []ownedObject {
	createOnly := createOnlyIn(revision)
	var objects []ownedObject
	for _, ref := range refsOf(revision) {
		if !createOnly[ref.ID] {
			objects = append(objects, ownedObject{Ref: ref, revision: revision.Spec.Revision})
		}
	}
	return objects
}

func createOnlyIn(revision *olm.ClusterExtensionRevision) map[manifest.ID]bool {
	found := map[manifest.ID]bool{}
	eachRef(revision, func(entry *olm.RevisionObject, ref manifest.Ref) {
		if entry.CreateOnly {
			found[ref.ID] = true
		}
	})
	return found
}

// releasedObjects returns the objects of the chain that are create-only in a revision. Penstock releases
// them when no other revision owns them.
func releasedObjects(revision *olm.ClusterExtensionRevision, there []ownedObject) []ownedObject {
	createOnly := createOnlyIn(revision)
	return slices.DeleteFunc(without(there, nil), func(object ownedObject) bool { return !createOnly[object.ID] })
}

// plan has the actions of Penstock in the cluster that follow from a change.
type plan struct {
	// writes are the objects that are created, changed or adopted, by the revision that has their
	// content.
	writes  []wanted
	deletes []ownedObject
	// releases are the objects that stay and lose Penstock's marks.
	releases []ownedObject
}

// wanted are objects with the content of a revision.
type wanted struct {
	revision *olm.ClusterExtensionRevision
	// refs are some or all objects of the revision, in rollout order.
	refs []manifest.Ref
}

// planOf returns the effects of a change. It applies the engine's rule (the newest layer has an
// object, and an object in no layer is deleted) to the final state: the rollout is complete and the
// older revisions are archived. In doubt it requires more rights: an object that an older revision
// has not written yet counts as written, because it may be written before this change takes effect.
func planOf(c change, now chainState) plan {
	var p plan
	switch c.kind {
	case create, unpause:
		p = planRollout(c, now)
	case archive, remove:
		p = planTeardown(c, now)
	}
	if c.ends || takesOwnership(c, now) {
		p.deletes = without(append(p.deletes, endOf(c.revision, now)...), nil)
	}
	if c.hastens {
		rollout := planRollout(c, now)
		p.add(plan{deletes: rollout.deletes, releases: rollout.releases})
	}
	if c.leaves {
		p.releases = without(append(p.releases, endOf(c.revision, now)...), nil)
	}
	if c.answers {
		p.deletes = without(append(p.deletes, deletionCandidates(c.revision, now)...), nil)
	}
	if c.released != "" {
		p.add(planRelease(c, now))
	}
	if c.armed {
		for _, target := range targets(c.revision, now.others) {
			p.add(planRollback(c.revision, target, now))
		}
	}
	if c.kind == remove && c.revision.DeletionTimestamp == nil {
		p.add(planOtherRollbacks(c.revision, now))
	}
	return p
}

// planRelease returns the effects of the end of a hold. The owner then creates the next revision,
// and the rights for it are not checked here. If the owner did not change, the content is that of
// the revision that was rolled back. If that revision is deleted, the content is unknown, and any
// object may be deleted.
func planRelease(c change, now chainState) plan {
	_, rollback, _ := olm.ChainOf(c.released)
	var undone *olm.ClusterExtensionRevision
	all := append(slices.Clone(now.others), *c.revision)
	for i := range all {
		if r := &all[i]; r.Spec.Revision < rollback && r.DeletionTimestamp == nil && (undone == nil || undone.Spec.Revision < r.Spec.Revision) {
			undone = r
		}
	}
	if undone == nil || undone.Spec.Revision != rollback-1 {
		there := slices.Clone(now.inventory)
		for _, layer := range layersOf(all) {
			there = append(there, ownedBy(layer)...)
		}
		return plan{deletes: without(there, nil)}
	}
	return planRollback(c.revision, undone, now)
}

func (p *plan) add(more plan) {
	p.writes, p.deletes = append(p.writes, more.writes...), append(p.deletes, more.deletes...)
	p.releases = append(p.releases, more.releases...)
}

// deletionCandidates returns the objects that a waiting deletion may include: objects that the
// chain has or may have, and that its newest revision does not have.
func deletionCandidates(revision *olm.ClusterExtensionRevision, now chainState) []ownedObject {
	there := slices.Clone(now.inventory)
	layers := layersOf(append(slices.Clone(now.others), *revision))
	for _, layer := range layers {
		there = append(there, ownedBy(layer)...)
	}
	if len(layers) == 0 {
		return there
	}
	return without(there, ids(refsOf(layers[0])))
}

// takesOwnership reports whether a revision gets an owner that no other active revision of the chain
// has. If another revision has the owner, garbage collection of the owner deletes all of them
// anyway. Owners of archived or deleted revisions do not count, because the user who added them
// needed fewer rights.
func takesOwnership(c change, now chainState) bool {
	owners := c.owners
	for _, layer := range layersOf(now.others) {
		owners = request.NewOwners(owners, layer.OwnerReferences)
	}
	return len(owners) > 0
}

// endOf returns the objects that may be deleted with a revision at any later time. Objects that
// older revisions have too count, because those revisions can be deleted by then.
func endOf(revision *olm.ClusterExtensionRevision, now chainState) []ownedObject {
	if revision.Spec.LifecycleState == olm.LifecycleStateArchived {
		return slices.DeleteFunc(slices.Clone(now.inventory), func(h ownedObject) bool { return h.revision != revision.Spec.Revision })
	}
	there := slices.Clone(now.inventory)
	for _, layer := range layersOf(now.others) {
		there = append(there, ownedBy(layer)...)
	}
	return append(there, ownedBy(revision)...)
}

// targets returns the revisions to which a revision may be rolled back automatically: the newest
// earlier revision that has succeeded, and earlier revisions that still may succeed. A revision
// without objects is excluded: rolling back to it would uninstall the extension.
func targets(revision *olm.ClusterExtensionRevision, others []olm.ClusterExtensionRevision) []*olm.ClusterExtensionRevision {
	var found []*olm.ClusterExtensionRevision
	var newest *olm.ClusterExtensionRevision
	for i := range others {
		other := &others[i]
		switch {
		case other.DeletionTimestamp != nil || other.Spec.Revision > revision.Spec.Revision || len(refsOf(other)) == 0:
		case succeeded(other):
			if newest == nil || newest.Spec.Revision < other.Spec.Revision {
				newest = other
			}
		case other.Spec.LifecycleState != olm.LifecycleStateArchived:
			found = append(found, other)
		}
	}
	if newest != nil {
		found = append(found, newest)
	}
	return found
}

// planOtherRollbacks returns the effects of removing a revision that is the rollback target of
// other revisions. The user who enabled those rollbacks was checked for this target, and not for
// the target before it.
func planOtherRollbacks(removed *olm.ClusterExtensionRevision, now chainState) plan {
	var p plan
	for _, armed := range layersOf(now.others) {
		if !rollsBack(armed) || armed.Spec.Revision < removed.Spec.Revision {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(now.others), func(o olm.ClusterExtensionRevision) bool { return o.Name == armed.Name })
		asked := map[string]bool{}
		for _, target := range targets(armed, append(slices.Clone(others), *removed)) {
			asked[target.Name] = true
		}
		for _, target := range targets(armed, others) {
			if !asked[target.Name] {
				p.add(planRollback(removed, target, now))
			}
		}
	}
	return p
}

// planRollback writes all objects of the target and deletes the other objects of the chain. Objects
// that the revision and other layers may still write count, too.
func planRollback(revision, target *olm.ClusterExtensionRevision, now chainState) plan {
	there := append(slices.Clone(now.inventory), ownedBy(revision)...)
	for _, layer := range layersOf(now.others) {
		there = append(there, ownedBy(layer)...)
	}
	own := refsOf(target)
	return plan{writes: []wanted{{revision: target, refs: own}}, deletes: without(there, ids(own)), releases: releasedObjects(target, there)}
}

// planRollout writes all objects of the revision. If it is the newest, its completion archives the
// other revisions, and objects that it does not have are deleted. If there is a newer revision, the
// change only ends deletions that a pause has delayed.
func planRollout(c change, now chainState) plan {
	layers := layersOf(now.others)
	own := refsOf(c.revision)
	keep := ids(own)
	there := slices.Clone(now.inventory)
	newest := true
	for _, layer := range layers {
		newest = newest && layer.Spec.Revision < c.revision.Spec.Revision
	}
	for _, layer := range layers {
		if newest {
			there = append(there, ownedBy(layer)...)
			continue
		}
		for _, ref := range refsOf(layer) {
			keep[ref.ID] = true
		}
	}
	p := plan{writes: []wanted{{revision: c.revision, refs: own}}, deletes: without(there, keep), releases: releasedObjects(c.revision, there)}
	if c.kind == create && !newest && layers[0].Spec.LifecycleState == olm.LifecycleStateActive {
		// Both revisions are imported. The newer revision archives this revision when it is
		// complete. Its own check did not cover objects that only this revision has.
		p.deletes = without(append(p.deletes, ownedBy(c.revision)...), ids(refsOf(layers[0])))
	}
	return p
}

// planTeardown deletes or releases the objects that no other layer has. Older layers restore their
// content of the other objects.
func planTeardown(c change, now chainState) plan {
	layers := layersOf(now.others)
	keep := map[manifest.ID]bool{}
	for _, layer := range layers {
		for _, ref := range refsOf(layer) {
			keep[ref.ID] = true
		}
	}
	there := now.inventory
	if c.revision.Spec.LifecycleState == olm.LifecycleStateArchived && c.kind == remove {
		// An archived revision does not own objects with the content of other revisions any more.
		there = slices.DeleteFunc(slices.Clone(there), func(h ownedObject) bool { return h.revision != c.revision.Spec.Revision })
	} else {
		there = append(slices.Clone(there), ownedBy(c.revision)...)
	}
	result := plan{deletes: without(there, keep)}
	if c.orphans {
		result.deletes, result.releases = orphaned(c.revision, result.deletes, now)
	}
	result.writes = fallback(c.revision, layers)
	return result
}

// orphaned divides the objects of a revision that orphans its objects into deleted and released
// objects. The revision whose content an object has decides. An object with the content of another
// revision is deleted if that revision was archived or deleted and relied on this revision to keep
// it.
func orphaned(revision *olm.ClusterExtensionRevision, ending []ownedObject, now chainState) (deletes, releases []ownedObject) {
	leaves := map[int64]bool{revision.Spec.Revision: true}
	for i := range now.others {
		other := &now.others[i]
		if other.DeletionTimestamp != nil && other.Spec.TeardownPolicy == olm.TeardownPolicyOrphan {
			leaves[other.Spec.Revision] = true
		}
	}
	for _, object := range ending {
		if leaves[object.revision] {
			releases = append(releases, object)
		} else {
			deletes = append(deletes, object)
		}
	}
	return deletes, releases
}

// fallback returns the objects that older layers write again when a revision is archived or
// deleted: objects for which they have other content. layers are sorted newest first.
func fallback(given *olm.ClusterExtensionRevision, layers []*olm.ClusterExtensionRevision) []wanted {
	covered := map[manifest.ID]manifest.Digest{}
	for _, ref := range refsOf(given) {
		covered[ref.ID] = ref.Digest
	}
	var writes []wanted
	for _, layer := range layers {
		if layer.Spec.Revision > given.Spec.Revision {
			continue
		}
		back := wanted{revision: layer}
		for _, ref := range refsOf(layer) {
			digest, was := covered[ref.ID]
			if !was {
				continue
			}
			delete(covered, ref.ID)
			if digest != ref.Digest {
				back.refs = append(back.refs, ref)
			}
		}
		// A paused layer writes nothing. The rights of the user who resumes it are checked then.
		if len(back.refs) > 0 && layer.Spec.LifecycleState != olm.LifecycleStatePaused {
			writes = append(writes, back)
		}
	}
	return writes
}

// layersOf returns the layers among revisions, newest first. A proposal that waits for approval is
// no layer: no user was checked for its content, and Penstock can withdraw it. So a check must not
// rely on it to keep an object, or to be the newest.
func layersOf(revisions []olm.ClusterExtensionRevision) []*olm.ClusterExtensionRevision {
	var layers []*olm.ClusterExtensionRevision
	for i := range revisions {
		if revisions[i].IsLayer() && !olmvalidation.WaitsForApproval(&revisions[i]) {
			layers = append(layers, &revisions[i])
		}
	}
	slices.SortFunc(layers, func(a, b *olm.ClusterExtensionRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
	return layers
}

// refsOf returns the references of all objects of a revision, in rollout order.
func refsOf(revision *olm.ClusterExtensionRevision) []manifest.Ref {
	var refs []manifest.Ref
	eachRef(revision, func(_ *olm.RevisionObject, ref manifest.Ref) { refs = append(refs, ref) })
	return refs
}

// eachRef calls f for every entry of a revision, in rollout order.
func eachRef(revision *olm.ClusterExtensionRevision, f func(*olm.RevisionObject, manifest.Ref)) {
	eachRefAt(revision, func(_, _ int, entry *olm.RevisionObject, ref manifest.Ref) { f(entry, ref) })
}

// eachRefAt is like eachRef, and passes the index of the phase and of the entry.
func eachRefAt(revision *olm.ClusterExtensionRevision, f func(phase, index int, entry *olm.RevisionObject, ref manifest.Ref)) {
	for p, phase := range revision.Spec.Phases {
		for i := range phase.Objects {
			entry := &phase.Objects[i]
			// Validation has refused an apiVersion that is not group/version.
			version, _ := schema.ParseGroupVersion(entry.APIVersion)
			f(p, i, entry, manifest.Ref{
				ID:      manifest.ID{Group: version.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name},
				Version: version.Version,
				Digest:  manifest.Digest(entry.Digest),
			})
		}
	}
}

func ids(refs []manifest.Ref) map[manifest.ID]bool {
	set := make(map[manifest.ID]bool, len(refs))
	for _, ref := range refs {
		set[ref.ID] = true
	}
	return set
}

// without returns the objects that keep does not have, each once, in order.
func without(there []ownedObject, keep map[manifest.ID]bool) []ownedObject {
	var out []ownedObject
	seen := map[manifest.ID]bool{}
	for _, object := range there {
		if !keep[object.ID] && !seen[object.ID] {
			seen[object.ID] = true
			out = append(out, object)
		}
	}
	return out
}
