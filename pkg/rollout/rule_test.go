package rollout

import (
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// rule is the engine's promise, without its implementation:
//
//	An object belongs to the newest layer that has reached its stage; an object
//	of the inventory that is in no layer is deleted, by uid, in reverse order.
//
// TestProperties and TestTwoExtensions compare random histories with it.
type rule struct {
	wanted map[manifest.ID]stage.Step
	// listed are the objects of any layer, reached or not. The chain's other objects must be
	// deleted.
	listed map[manifest.ID]bool
}

func ruleOf(layers []Layer, reached map[string]int) rule {
	r := rule{wanted: map[manifest.ID]stage.Step{}, listed: map[manifest.ID]bool{}}
	for _, layer := range slices.Backward(layers) { // a newer layer overrides
		for i, stg := range layer.Stages {
			for _, step := range stg.Steps {
				r.listed[step.ID] = true
				if i < reached[layer.Key] {
					r.wanted[step.ID] = step
				}
			}
		}
	}
	return r
}

// witness checks a delete or release, and returns a complaint or "". The object must be in the
// stored inventory (by uid or, after a crash, because the chain wrote it) and in no layer. It must
// be released, and not deleted, if a user asked to keep it.
func (s *saga) witness(verb string, have *thing) string {
	id := have.ref.ID
	entry, recorded := s.stored.Entries[id]
	switch {
	case !recorded || entry.UID != have.uid && !s.applied[have.uid]:
		return fmt.Sprintf("%s of %s (%s), which is not in the inventory: %+v", verb, id, have.uid, entry)
	case ruleOf(s.layers, nil).listed[id]:
		return fmt.Sprintf("%s of %s, which a layer lists", verb, id)
	case s.spares(entry, have) != (verb == "release"):
		return fmt.Sprintf("%s of %s, which is not what was asked for", verb, id)
	}
	return ""
}

// spares reports whether the object stays in the cluster: it was adopted, its revision releases its
// objects, or a user marked it to be kept.
func (s *saga) spares(entry Entry, have *thing) bool {
	return entry.Adopted || s.orphan[entry.Revision] || have.fields[keepField].value != ""
}

const keepField = "annotations:penstock.dev/teardown-policy"

type backup struct {
	layers []Layer
	stored Inventory
	orphan map[int64]bool
}

func (s *saga) backUp() backup {
	return backup{layers: slices.Clone(s.layers), stored: s.stored.clone(), orphan: maps.Clone(s.orphan)}
}

// restore replaces the store with an older one, which does not know later events.
func (s *saga) restore(b backup) {
	s.layers, s.stored, s.orphan = slices.Clone(b.layers), b.stored.clone(), maps.Clone(b.orphan)
	s.restart()
}

// reimport imports an export of all revisions into an empty store. The revisions have new uids, and
// no inventory.
func (s *saga) reimport(key func(Layer) string) {
	s.layers, s.stored = slices.Clone(s.layers), Inventory{}
	for i := range s.layers {
		s.layers[i].Key = key(s.layers[i])
	}
	s.restart()
}
