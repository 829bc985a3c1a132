package rollout

import (
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// rule is what the engine promises, without how it gets there:
//
//	An object belongs to the newest layer that has reached its stage; an object
//	of the inventory that is in no layer is deleted, by uid, in reverse order.
//
// The random histories of TestProperties and TestTwoExtensions are held to it.
type rule struct {
	// wanted holds the required content of each object: the content from the newest layer that has
	// reached the object's stage.
	wanted map[manifest.ID]stage.Step
	// listed are the objects of any layer, reached or not. Objects in none of them have to
	// go, when they were ours to take away.
	listed map[manifest.ID]bool
}

// ruleOf states the rule for some layers, newest first, that have come so far.
func ruleOf(layers []Layer, reached map[string]int) rule {
	r := rule{wanted: map[manifest.ID]stage.Step{}, listed: map[manifest.ID]bool{}}
	for _, layer := range slices.Backward(layers) { // a newer one has the last word
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

// witness is a server that knows what may be taken from it: what the stored
// inventory has, by uid or, after a crash, by being written by us, what is in no
// layer, and what nobody asked to be left. It returns a complaint about a delete or
// release, or nothing.
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

// spares says whether the removal of an object leaves it in the cluster: its
// revision was deleted to orphan what it has, or somebody marked the object.
func (s *saga) spares(entry Entry, have *thing) bool {
	return entry.Adopted || s.orphan[entry.Revision] || have.fields[keepField].value != ""
}

const keepField = "annotations:penstock.dev/teardown-policy"

// backup is a store as it was at some time.
type backup struct {
	layers []Layer
	stored Inventory
	orphan map[int64]bool
}

func (s *saga) backUp() backup {
	return backup{layers: slices.Clone(s.layers), stored: s.stored.clone(), orphan: maps.Clone(s.orphan)}
}

// restore puts an older store in the place of this one: nobody knows of what
// happened since.
func (s *saga) restore(b backup) {
	s.layers, s.stored, s.orphan = slices.Clone(b.layers), b.stored.clone(), maps.Clone(b.orphan)
	s.restart()
}

// reimport is an export of all revisions, imported into an empty store: they have
// other uids, and nobody knows what they have in the cluster.
func (s *saga) reimport(key func(Layer) string) {
	s.layers, s.stored = slices.Clone(s.layers), Inventory{}
	for i := range s.layers {
		s.layers[i].Key = key(s.layers[i])
	}
	s.restart()
}
