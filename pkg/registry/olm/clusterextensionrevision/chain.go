package clusterextensionrevision

import (
	"cmp"
	"context"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
)

// maxPrevious bounds the entries that the server writes into spec.previous.
const maxPrevious = 10

// ChainFunc returns the revisions of a chain, unsorted. The watch cache shares the result; callers
// must not change it.
type ChainFunc func(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)

// previousOf returns the previous revisions of a new revision: all with lower numbers that are not
// archived, newest first. It omits proposals that wait for approval, which were never rolled out
// and may be withdrawn.
func previousOf(revisions []olm.ClusterExtensionRevision, number int64) []olm.PreviousRevision {
	var alive []*olm.ClusterExtensionRevision
	for i := range revisions {
		spec := &revisions[i].Spec
		if spec.LifecycleState != olm.LifecycleStateArchived && spec.Revision < number && !validation.WaitsForApproval(&revisions[i]) {
			alive = append(alive, &revisions[i])
		}
	}
	slices.SortFunc(alive, func(a, b *olm.ClusterExtensionRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
	var previous []olm.PreviousRevision
	for _, revision := range alive[:min(len(alive), maxPrevious)] {
		previous = append(previous, olm.PreviousRevision{Name: revision.Name, UID: revision.UID})
	}
	return previous
}

// facts holds the fields of an entry that the server computes from its manifest.
type facts struct {
	size int64
	mark release.Mark
}

// factsOf computes the facts of a manifest. Admission refuses invalid marks.
func factsOf(object manifest.Object) facts {
	mark, _ := release.MarkOf(object)
	return facts{size: sizeOf(object), mark: mark}
}

// onto writes the facts into an entry. It does not write to an entry that already shows them,
// because a cache may share it.
func (f facts) onto(entry *olm.RevisionObject) {
	if shown(entry) == f {
		return
	}
	entry.Size, entry.CreateOnly, entry.InstallLevel = f.size, f.mark.CreateOnly, int32(f.mark.Level)
}

func shown(entry *olm.RevisionObject) facts {
	return facts{size: entry.Size, mark: release.Mark{CreateOnly: entry.CreateOnly, Level: int(entry.InstallLevel)}}
}

// ontoTree works like onto, for a decoded body.
func (f facts) ontoTree(entry map[string]any) {
	delete(entry, "size")
	delete(entry, "createOnly")
	delete(entry, "installLevel")
	if f.size > 0 {
		entry["size"] = f.size
	}
	if f.mark.CreateOnly {
		entry["createOnly"] = true
	}
	if f.mark.Level > 0 {
		entry["installLevel"] = int64(f.mark.Level)
	}
}

// factsIn returns the facts that revisions show of all their objects.
func factsIn(revisions []olm.ClusterExtensionRevision) map[entryKey]facts {
	found := map[entryKey]facts{}
	for r := range revisions {
		eachObject(&revisions[r], func(_, _ int, entry *olm.RevisionObject) {
			found[keyOf(entry)] = shown(entry)
		})
	}
	return found
}

func eachObject(revision *olm.ClusterExtensionRevision, f func(phase, index int, entry *olm.RevisionObject)) {
	for p := range revision.Spec.Phases {
		objects := revision.Spec.Phases[p].List()
		for e := range objects {
			f(p, e, &objects[e])
		}
	}
}
