package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// rollOut compiles the layers and lets the engine do a pass.
func (s *scope) rollOut(ctx context.Context) error {
	if s.targetErr != nil {
		return nil
	}
	s.manifests = newManifestCache(s.library, s.revisions, s.known)
	work := rollout.Work{
		Owner:            s.chain,
		Inventory:        s.ledger.inventory,
		Save:             s.ledger.save,
		Bodies:           s.manifests,
		Orphan:           map[int64]bool{},
		NewOwners:        map[int64]*targetclient.NewOwner{},
		DeleteAdopted:    map[int64]bool{},
		TakesFrom:        map[int64]map[string]bool{},
		AllowCRDDeletion: map[string]bool{},
		Freeze:           s.freeze,
		CompetingOwner:   s.competingOwner(),
		Budget:           s.budget(),
	}
	for i := range s.revisions {
		revision := &s.revisions[i]
		for name := range strings.SplitSeq(revision.Annotations[olmv1alpha1.AllowCRDDeletionAnnotation], ",") {
			work.AllowCRDDeletion[strings.TrimSpace(name)] = true
		}
		work.TakesFrom[revision.Spec.Revision] = rev.TakesFrom(revision)
		work.DeleteAdopted[revision.Spec.Revision] = revision.Spec.AdoptedTeardownPolicy == olmv1alpha1.TeardownPolicyDelete
		if !rev.IsLayer(revision) {
			work.Orphan[revision.Spec.Revision] = rev.LeavesObjects(revision)
			if rev.IsHanded(revision) {
				work.NewOwners[revision.Spec.Revision] = newOwnerOf(revision)
			}
			continue
		}
		byLevels, err := s.byLevels(ctx, revision)
		if err != nil {
			return err
		}
		compiled, err := s.layer(ctx, revision, byLevels)
		if err != nil {
			// The objects of an unreadable layer stay unchanged. It is no reason to delete objects,
			// nor to roll out the layers below it.
			s.invalid[revision.Name] = err
			continue
		}
		work.Inventory.Levels = ordered(work.Inventory.Levels, compiled)
		work.Layers = append(work.Layers, compiled)
		s.layers = append(s.layers, revision)
	}
	if len(s.invalid) > 0 {
		return nil
	}
	work.ReportDrift = s.reportsDrift()
	var err error
	if s.report, err = s.cluster.Engine.Reconcile(ctx, work); err != nil {
		return err
	}
	for i := range s.report.Layers {
		s.inverted = append(s.inverted, s.inversions(ctx, s.layers[i], &s.report.Layers[i]))
	}
	if s.report.Idle {
		s.library.close(s.known)
	}
	return nil
}

// ordered records whether install levels order a layer. It is stored with the first stage that the
// layer reaches. The given map may be shared, so ordered does not change it.
func ordered(levels map[string]bool, layer rollout.Layer) map[string]bool {
	if levels[layer.Key] == layer.Levels {
		return levels
	}
	levels = maps.Clone(levels)
	if levels == nil {
		levels = map[string]bool{}
	}
	if layer.Levels {
		levels[layer.Key] = true
	} else {
		delete(levels, layer.Key)
	}
	return levels
}

// compilation identifies a compiled revision and its mode.
type compilation struct {
	uid      types.UID
	byLevels bool
}

// layer compiles a revision once, because the result never changes.
func (s *scope) layer(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, byLevels bool) (rollout.Layer, error) {
	if err := s.vet(ctx, revision); err != nil {
		return rollout.Layer{}, err
	}
	key := compilation{revision.UID, byLevels}
	found, ok := s.compiled.Get(key)
	if !ok {
		fresh, err := rev.Layer(revision, byLevels)
		if err != nil {
			return rollout.Layer{}, err
		}
		s.compiled.Add(key, fresh)
		found = fresh
	}
	compiled := found.(rollout.Layer)
	compiled.Paused = revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
	return compiled, nil
}

// leading returns the index of the layer that progresses: the newest layer that is not paused, or
// the newest if all are paused.
func (s *scope) leading() int {
	return max(0, slices.IndexFunc(s.layers, func(layer *olmv1alpha1.ClusterExtensionRevision) bool {
		return layer.Spec.LifecycleState != olmv1alpha1.LifecycleStatePaused
	}))
}

func (s *scope) finding(i int) finding {
	revision := &s.revisions[i]
	found := finding{invalid: s.invalid[revision.Name], targetErr: s.targetErr, chainHeld: s.held, freeze: s.freeze, began: s.began}
	found.measured = s.measured(revision)
	if i > 0 {
		found.next = &s.revisions[i-1]
	}
	for n, layer := range s.layers {
		if layer == revision && n < len(s.report.Layers) {
			found.layer, found.newest = &s.report.Layers[n], n == s.leading()
			found.taking = s.taking(n)
			if leading := s.leading(); leading < n {
				found.successor = s.layers[leading].Name
			}
			if n < len(s.inverted) {
				found.inverted = s.inverted[n]
			}
		}
	}
	if found.layer == nil {
		found.remaining = s.ledger.holder(revision.Spec.Revision)
	}
	for _, failure := range s.report.Leaving {
		if s.ledger.inventory.Entries[failure.ID].Revision == revision.Spec.Revision {
			if failure.Acknowledge != "" {
				failure.Message += fmt.Sprintf("%s%s %s=%s",
					acknowledgeCommand, revision.Name, olmv1alpha1.AcknowledgeDeletionAnnotation, failure.Acknowledge)
			}
			if failure.Reason == rollout.ReasonCRDInstances {
				failure.Message += fmt.Sprintf("%s%s %s=%s", acknowledgeCommand, revision.Name, olmv1alpha1.AllowCRDDeletionAnnotation, s.allowing(revision))
			}
			found.leaving = append(found.leaving, failure)
		}
	}
	found.stillStuck(revision)
	return found
}

// allowing returns the annotation value that allows the deletion of all definitions of the revision
// that have instances.
func (s *scope) allowing(revision *olmv1alpha1.ClusterExtensionRevision) string {
	var names []string
	if before := revision.Annotations[olmv1alpha1.AllowCRDDeletionAnnotation]; before != "" {
		names = append(names, before)
	}
	const most = 256 // bytes: the command must fit into a message; status requests the rest later
	for _, failure := range s.report.Leaving {
		if len(strings.Join(names, ","))+len(failure.ID.Name) > most && len(names) > 0 {
			break
		}
		if failure.Reason == rollout.ReasonCRDInstances && s.ledger.inventory.Entries[failure.ID].Revision == revision.Spec.Revision {
			names = append(names, failure.ID.Name)
		}
	}
	return strings.Join(names, ",")
}

// taking returns the names of the layers above the n-th that have reached objects, newest
// first.
func (s *scope) taking(n int) []string {
	var names []string
	for i, layer := range s.layers[:n] {
		if slices.ContainsFunc(s.report.Layers[i].Phases, func(phase rollout.PhaseReport) bool { return phase.Reached }) {
			names = append(names, layer.Name)
		}
	}
	return names
}

// stillStuck keeps a refusal that the status already reports as Failing. Only the process that saw
// its start knows its age, so a new process must not withdraw the finding.
func (f *finding) stillStuck(revision *olmv1alpha1.ClusterExtensionRevision) {
	said := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionFailing)
	if said == nil || said.Status != metav1.ConditionTrue {
		return
	}
	goOn := func(failures []rollout.Failure) {
		for i := range failures {
			failure := &failures[i]
			same := failure.Reason == said.Reason && strings.HasPrefix(said.Message, failure.ID.String()+": ")
			failure.Stuck = failure.Stuck || (failure.Refused || failure.Held) && same
		}
	}
	goOn(f.leaving)
	if f.layer != nil {
		for i := range f.layer.Phases {
			goOn(f.layer.Phases[i].Failures)
		}
	}
}
