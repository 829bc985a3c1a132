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
	// others are the revisions of the chain without the one that changes.
	others []olm.ClusterExtensionRevision
	// inventory lists the objects that the chain has in the cluster, or is about to have.
	inventory []ownedObject
}

// ownedObject is an object that the chain has in the cluster, or may have.
type ownedObject struct {
	manifest.Ref
	// revision is the number of the one whose content it carries.
	revision int64
}

// ownedBy returns the objects of a revision as if all existed, without create-only objects. The chain
// never owns those, and so never deletes them.
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

// createOnlyIn returns the objects that a revision creates when they are absent, and never changes
// later.
func createOnlyIn(revision *olm.ClusterExtensionRevision) map[manifest.ID]bool {
	found := map[manifest.ID]bool{}
	eachRef(revision, func(entry *olm.RevisionObject, ref manifest.Ref) {
		if entry.CreateOnly {
			found[ref.ID] = true
		}
	})
	return found
}

// givenAway are objects of the chain that a revision has as create-only: they are
// released when no other revision owns them any more.
func givenAway(revision *olm.ClusterExtensionRevision, there []ownedObject) []ownedObject {
	createOnly := createOnlyIn(revision)
	return slices.DeleteFunc(without(there, nil), func(object ownedObject) bool { return !createOnly[object.ID] })
}

// plan has the actions of Penstock in the cluster that follow from a change.
type plan struct {
	// writes are the objects that are created, changed or adopted, by the
	// revision that has their content.
	writes []wanted
	// deletes are the objects that go.
	deletes []ownedObject
	// releases are the objects that stay without Penstock's marks.
	releases []ownedObject
}

// wanted are objects as a revision has them.
type wanted struct {
	revision *olm.ClusterExtensionRevision
	// refs are some or all of its objects, in rollout order.
	refs []manifest.Ref
}

// planOf returns the effects of a change. It applies the engine's rule (the newest layer has an
// object, and an object in no layer is deleted) to the final state: the rollout is complete and the
// older revisions are archived. It errs towards more checks: an object that an older revision has not
// written yet counts as written, because it may be before this change takes effect.
func planOf(c change, now chainState) plan {
	var p plan
	switch c.kind {
	case create, unpause:
		p = planRollout(c, now)
	case archive, remove:
		p = planTeardown(c, now)
	}
	if c.ends || ownedAnew(c, now) {
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

// planRelease is for the end of a hold: the owner makes the next revision, of which
// nobody is asked here. It has what was rolled back, as long as the owner is as it was then;
// when the revision before the rollback is gone it is not known what that is, and all may go.
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

// deletionCandidates returns what a deletion that was held back may be of: what the chain has, or
// may have, and its newest revision has not.
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

// ownedAnew reports whether a revision gets an owner that no other active revision of the chain
// has. An owner that the chain has already ends all of it, no matter who joins. One of a revision
// that is archived, or goes, ends nothing of the others, and who gave it that owner was asked for
// no more.
func ownedAnew(c change, now chainState) bool {
	owners := c.owners
	for _, layer := range layersOf(now.others) {
		owners = request.NewOwners(owners, layer.OwnerReferences)
	}
	return len(owners) > 0
}

// endOf returns what may go with a revision that is deleted at any time from now on:
// what older revisions have too may be in no other one by then.
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

// targets returns the revisions that a revision may be rolled back to by itself:
// the newest earlier one that has succeeded, and those that still may. One without
// objects is none: to go back to it would be to uninstall the extension.
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

// planOtherRollbacks is for the removal of a revision that others may be rolled back to:
// who armed them was asked about that one, and not about the one before it.
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

// planRollback writes all objects of the target, and what it lacks goes: of what the
// chain has, and of what the revision and the others may still put there.
func planRollback(revision, target *olm.ClusterExtensionRevision, now chainState) plan {
	there := append(slices.Clone(now.inventory), ownedBy(revision)...)
	for _, layer := range layersOf(now.others) {
		there = append(there, ownedBy(layer)...)
	}
	own := refsOf(target)
	return plan{writes: []wanted{{revision: target, refs: own}}, deletes: without(there, ids(own)), releases: givenAway(target, there)}
}

// planRollout writes all objects of the revision. When it is the newest one,
// completing it archives the others: what it lacks goes. Below a newer one it
// only ends what a pause has held back.
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
	p := plan{writes: []wanted{{revision: c.revision, refs: own}}, deletes: without(there, keep), releases: givenAway(c.revision, there)}
	if c.kind == create && !newest && layers[0].Spec.LifecycleState == olm.LifecycleStateActive {
		// Both are imported. The newer one archives this one when it is complete,
		// and nobody was asked for it about what only this one has.
		p.deletes = without(append(p.deletes, ownedBy(c.revision)...), ids(refsOf(layers[0])))
	}
	return p
}

// planTeardown deletes, or releases, what no other layer has. Other content of an older layer
// is restored.
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
		// The others' objects are none of its business any more.
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

// orphaned divides the objects of a revision that orphans its objects into deleted and released ones.
// The revision whose content an object has decides. An object with the content of another revision is
// deleted if that revision was given up and relied on this one to keep it.
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

// fallback returns what older layers write again when a revision is given up: the
// objects that they have with another content. Layers come newest first.
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
		// A paused layer takes the object back and writes nothing until somebody
		// lets it, who is asked then.
		if len(back.refs) > 0 && layer.Spec.LifecycleState != olm.LifecycleStatePaused {
			writes = append(writes, back)
		}
	}
	return writes
}

// layersOf returns the revisions whose objects are wanted, newest first. A proposal that waits
// for approval is none: nobody was asked for what it wants, and Penstock withdraws it in its own
// name, so that nobody may count on it to keep an object, or to be the newest.
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

// refsOf returns what a revision refers to, in rollout order.
func refsOf(revision *olm.ClusterExtensionRevision) []manifest.Ref {
	var refs []manifest.Ref
	eachRef(revision, func(_ *olm.RevisionObject, ref manifest.Ref) { refs = append(refs, ref) })
	return refs
}

// eachRef calls f for every entry of a revision, in rollout order.
func eachRef(revision *olm.ClusterExtensionRevision, f func(*olm.RevisionObject, manifest.Ref)) {
	eachRefAt(revision, func(_, _ int, entry *olm.RevisionObject, ref manifest.Ref) { f(entry, ref) })
}

// eachRefAt is eachRef with the places of an entry's phase and of the entry in it.
func eachRefAt(revision *olm.ClusterExtensionRevision, f func(phase, index int, entry *olm.RevisionObject, ref manifest.Ref)) {
	for p, phase := range revision.Spec.Phases {
		for i := range phase.Objects {
			entry := &phase.Objects[i]
			// Validation has refused what is not of the form group/version.
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

// without returns the objects that are not kept, each once, in order.
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
