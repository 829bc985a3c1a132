package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// history is a random history of a chain. Revisions are added and removed, the process is killed,
// stores are lost and restored, watches lag, and workloads fail. Other users change, delete and
// replace objects.
type history struct {
	*saga
	last int64
	// made counts layers, so that keys are never reused.
	made int
	// saved is a backup of the store, or nil.
	saved *backup
	// foreign objects, by uid, with the value that only their owner may change.
	foreign map[types.UID]string
	// adoptable objects were foreign and may have been adopted.
	adoptable map[types.UID]bool
	// stripped maps an object to the marks of the chain that it lost, perhaps before a killed
	// process could record the object. The engine cannot recognise an object that lost two marks.
	stripped map[types.UID]map[string]bool
	// unrecorded objects belong to the chain, but their store was lost.
	unrecorded map[types.UID]bool
	// scaled objects have a value that an autoscaler set while the chain owned them: the engine
	// must not take it back.
	scaled  map[types.UID]bool
	reached map[string]int
	died    int
	// lost is true after a store was restored or replaced.
	lost bool
}

func pool() []string {
	return []string{"ConfigMap a/x", "ConfigMap a/y", "ConfigMap b/x", "Deployment.apps a/x", "Deployment.apps b/y", "Namespace a", "Widget.example.com a/w", "Widget.example.com b/w"}
}

// TestProperties: the engine keeps its one rule in random histories.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &history{
			saga: newSaga(), foreign: map[types.UID]string{}, adoptable: map[types.UID]bool{}, stripped: map[types.UID]map[string]bool{},
			unrecorded: map[types.UID]bool{}, scaled: map[types.UID]bool{}, reached: map[string]int{},
		}
		s.limited()
		s.heal(versionPool()...)
		s.taking = func(verb string, have *thing) {
			if complaint := s.witness(verb, have); complaint != "" {
				t.Error(complaint)
			}
		}
		s.place(refOf("ConfigMap bystander/x"), map[string]string{"value": "theirs"})
		bystander := s.objects[refOf("ConfigMap bystander/x").ID].version
		t.Repeat(map[string]func(*rapid.T){
			"":        s.check,
			"pass":    s.reconcile,
			"crash":   s.crash,
			"answer":  func(*rapid.T) { s.answer() },
			"store":   s.loseStore,
			"watch":   s.watch,
			"lag":     func(t *rapid.T) { s.lagging = rapid.Bool().Draw(t, "lagging") },
			"probe":   s.probe,
			"upgrade": s.upgrade,
			"archive": s.archive,
			"pause":   s.pause,
			"freeze":  s.frost,
			"meddle":  s.meddle,
			"version": s.version,
			"restart": s.again,
		})
		s.end(t)
		if s.objects[refOf("ConfigMap bystander/x").ID].version != bystander {
			t.Errorf("an object of nobody's inventory was touched")
		}
	})
}

func (s *history) upgrade(t *rapid.T) {
	if len(s.layers) > 3 {
		t.Skip("enough revisions")
	}
	s.last++
	r := s.revision(s.last).adopting(rapid.SampledFrom([]stage.Adoption{stage.AdoptNever, stage.AdoptUncontrolled}).Draw(t, "adopt"))
	objects := rapid.Permutation(pool()).Draw(t, "order")
	for i := range rapid.IntRange(1, 3).Draw(t, "phases") {
		var listed []string
		for range rapid.IntRange(0, 2).Draw(t, "objects") {
			object := objects[0]
			if rest, is := strings.CutPrefix(object, "Widget.example.com "); is {
				object = "Widget.example.com/" + rapid.SampledFrom(versionPool()).Draw(t, "version") + " " + rest
			}
			listed = append(listed, object+"="+rapid.SampledFrom([]string{"1", "2", "1,more", "2,most"}).Draw(t, "value"))
			objects = objects[1:]
		}
		r.phase(fmt.Sprint("phase-", i), listed...)
	}
	layer := r.layer()
	layer.Key = s.key(layer)
	for i := 1; i < len(layer.Stages); i++ {
		if stg := &layer.Stages[i]; rapid.Bool().Draw(t, "early") {
			stg.Phase, stg.Early = layer.Stages[i-1].Phase, true
		}
	}
	s.layers, s.news = append([]Layer{layer}, s.layers...), true
	s.note()
}

// key returns a new layer key.
func (s *history) key(layer Layer) string {
	s.made++
	return fmt.Sprintf("uid-%d-of-%d", s.made, layer.Revision)
}

// watch delivers changes: all in order, one kind ahead of the others, or a restarted watch that
// skips the changes in between.
func (s *history) watch(t *rapid.T) {
	kind := refOf(rapid.SampledFrom(pool()).Draw(t, "kind")).GroupKind()
	switch rapid.SampledFrom([]string{"next", "ahead", "anew"}).Draw(t, "how") {
	case "next":
		s.deliver(rapid.IntRange(1, 4).Draw(t, "changes"))
	case "ahead":
		s.deliverOf(kind, rapid.IntRange(1, 4).Draw(t, "changes"))
	case "anew":
		s.relist(kind)
	}
}

// probe makes all workloads ready, or one unready.
func (s *history) probe(t *rapid.T) {
	if rapid.Bool().Draw(t, "ready") {
		s.controllers()
		return
	}
	s.alter(refOf(rapid.SampledFrom(pool()).Draw(t, "workload")).ID, func(o *thing) { o.readyAt = -1 })
}

// loseStore saves the store, restores a saved store, or imports the revisions into an empty store.
func (s *history) loseStore(t *rapid.T) {
	how := rapid.SampledFrom([]string{"save", "restore", "import"}).Draw(t, "how")
	switch {
	case how == "save" || how == "restore" && s.saved == nil:
		saved := s.backUp()
		s.saved = &saved
		return
	case how == "restore":
		s.restore(*s.saved)
	default:
		s.reimport(s.key)
	}
	s.died++
	s.lost = true
	s.reached = map[string]int{}
	for id, o := range s.objects {
		s.unrecorded[o.uid] = s.applied[o.uid] && s.stored.Entries[id].UID != o.uid
	}
	s.note()
}

// archive removes a random revision, with or without releasing its objects.
func (s *history) archive(t *rapid.T) {
	if len(s.layers) == 0 {
		t.Skip("no revision")
	}
	i := rapid.IntRange(0, len(s.layers)-1).Draw(t, "layer")
	s.orphan[s.layers[i].Revision] = rapid.Bool().Draw(t, "orphan")
	s.layers, s.news = slices.Delete(slices.Clone(s.layers), i, i+1), true
}

func (s *history) pause(t *rapid.T) {
	if len(s.layers) == 0 {
		t.Skip("no revision")
	}
	i := rapid.IntRange(0, len(s.layers)-1).Draw(t, "layer")
	s.layers = slices.Clone(s.layers)
	s.layers[i].Paused, s.news = !s.layers[i].Paused, true
}

// frost freezes the cluster and checks that nothing is written, or ends the freeze.
func (s *history) frost(t *rapid.T) {
	s.news = true
	if s.freeze != nil {
		s.freeze = nil
		return
	}
	s.freeze = &Freeze{Author: "alice", Reason: "the year ends"}
	s.spent()
	s.reconcile(t)
	if writes, _ := s.spent(); len(slices.DeleteFunc(writes, func(w string) bool { return strings.HasPrefix(w, "save") })) > 0 {
		t.Errorf("a frozen cluster was written to: %v", writes)
	}
}

func (s *history) meddle(t *rapid.T) {
	ref := refOf(rapid.SampledFrom(pool()).Draw(t, "object"))
	have := s.objects[ref.ID]
	if have == nil {
		if rapid.Bool().Draw(t, "foreign") {
			s.foreign[s.place(ref, map[string]string{"value": "theirs", "more": "theirs"})] = "theirs"
			s.note()
		}
		return
	}
	if _, theirs := s.foreign[have.uid]; theirs {
		s.erase(ref.ID)
		return
	}
	switch rapid.SampledFrom([]string{"change", "remove", "strip", "wipe", "delete", "replace", "hold", "same", "scale", "keep"}).Draw(t, "how") {
	case "scale":
		s.scaled[have.uid] = s.applied[have.uid] && len(s.stripped[have.uid]) == 0
		s.alter(ref.ID, func(o *thing) { o.set("data:value", "scaled", "autoscaler@scale") })
	case "change":
		delete(s.scaled, have.uid)
		s.alter(ref.ID, func(o *thing) { o.set("data:value", "drifted", "somebody") })
	case "remove":
		delete(s.scaled, have.uid)
		s.alter(ref.ID, func(o *thing) { delete(o.fields, "data:value") })
	case "strip":
		s.strip(have.uid, "label")
		s.alter(ref.ID, func(o *thing) { delete(o.fields, "labels:"+testNames().ChainLabel) })
	case "wipe":
		s.strip(have.uid, "entry")
		delete(s.scaled, have.uid)
		s.alter(ref.ID, func(o *thing) {
			for path, field := range o.fields {
				o.fields[path] = owned{field.value, nil}
			}
		})
	case "delete":
		s.erase(ref.ID)
	case "replace":
		s.erase(ref.ID)
		s.foreign[s.place(ref, map[string]string{"value": "theirs"})] = "theirs"
		s.note()
	case "hold":
		s.alter(ref.ID, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
	case "keep":
		s.alter(ref.ID, func(o *thing) { o.set(keepField, "Orphan", "somebody") })
	case "same":
		s.alter(ref.ID, func(o *thing) { o.set("annotations:note", "hello", "somebody") })
	}
}

func (s *history) strip(uid types.UID, mark string) {
	if s.stripped[uid] == nil {
		s.stripped[uid] = map[string]bool{}
	}
	s.stripped[uid][mark] = true
}

// strange reports whether the engine may be unable to recognise an object as the chain's own. A
// lost store also loses the intents.
func (s *history) strange(uid types.UID) bool {
	return len(s.stripped[uid]) > 1 || len(s.stripped[uid]) > 0 && s.lost
}

// note records the objects that the layers may adopt.
func (s *history) note() {
	for _, layer := range s.layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				if o := s.objects[step.ID]; o != nil && step.Policy.Adopt == stage.AdoptUncontrolled {
					s.adoptable[o.uid] = true
				}
			}
		}
	}
}

func (s *history) reconcile(t *rapid.T) {
	if _, err := s.pass(); err != nil {
		t.Fatalf("reconciling: %v", err)
	}
}

// crash kills the process before or after one of its next writes. The next process may first see an
// older state.
func (s *history) crash(t *rapid.T) {
	s.fuse = rapid.IntRange(0, 6).Draw(t, "writes")
	s.lastWriteLands = rapid.Bool().Draw(t, "lands")
	if _, err := s.pass(); err != nil && !errors.Is(err, errCrash) {
		t.Fatalf("reconciling: %v", err)
	}
	s.died++
	s.restart()
	s.lagging = rapid.Bool().Draw(t, "lagging")
	if s.lagging {
		s.rewind(refOf(rapid.SampledFrom(pool()).Draw(t, "kind")).GroupKind(), rapid.IntRange(0, 4).Draw(t, "changes"))
	}
}

// check tests the properties that hold at any time.
func (s *history) check(t *rapid.T) {
	for key, n := range s.reached {
		if s.stored.Reached[key] < n {
			t.Errorf("layer %s had reached %d stages, and now %d", key, n, s.stored.Reached[key])
		}
	}
	maps.Copy(s.reached, s.stored.Reached)
	for _, entry := range s.stored.Entries {
		delete(s.unrecorded, entry.UID)
	}
	for _, o := range s.objects {
		if s.scaled[o.uid] && o.fields["data:value"].value != "scaled" {
			t.Errorf("%s was taken from its autoscaler: %+v", o.ref.ID, o)
		}
	}
	for uid := range s.deleted {
		if !s.applied[uid] {
			t.Errorf("deleted %s, which was never ours", uid)
		}
	}
	for uid := range s.foreign {
		if s.applied[uid] && !s.adoptable[uid] {
			t.Errorf("wrote to %s, which is somebody else's", uid)
		}
	}
}

// end removes all obstacles, such as pauses and finalizers, and lets the rollout settle. Then it
// compares the cluster with the rule (see ruleOf).
func (s *history) end(t *rapid.T) {
	s.again(t)
	// All versions that layers use are served, so that all their objects can be written.
	s.heal(s.versionsInUse()...)
	s.freeze = nil
	s.layers = slices.Clone(s.layers)
	for i := range s.layers {
		s.layers[i].Paused = false
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.objects), manifest.ID.Compare) {
		switch o := s.objects[id]; {
		case o.deleting:
			s.erase(id)
		case len(o.finalizers) > 0:
			s.alter(id, func(o *thing) { o.finalizers = nil })
		}
	}
	report := s.settle(t)
	for s.answer() {
		report = s.settle(t)
	}
	s.check(t)

	rule := ruleOf(s.layers, s.stored.Reached)
	for id, step := range rule.wanted {
		s.compare(t, step, s.objects[id])
	}
	for id, o := range s.objects {
		_, theirs := s.foreign[o.uid]
		switch {
		case rule.listed[id] || !s.applied[o.uid] || theirs || s.strange(o.uid) || s.unrecorded[o.uid]:
		case !s.released[o.uid]:
			t.Errorf("%s is in no layer and still there: %+v", id, o)
		case o.fields["labels:"+testNames().ChainLabel].value != "", slices.Contains(o.owners(), "penstock/argocd"):
			t.Errorf("%s was released and has marks of ours: %+v", id, o)
		}
	}
	for id, entry := range s.stored.Entries {
		if !rule.listed[id] {
			t.Errorf("%s is in no layer and still in the inventory: %+v", id, entry)
		}
		// Objects of unreached stages stay unchanged.
		_, held := rule.wanted[id]
		if o := s.objects[id]; held && !entry.Intent() && o != nil && !s.strange(o.uid) && !s.released[o.uid] && o.uid != entry.UID && !strings.HasPrefix(string(o.uid), "foreign") {
			t.Errorf("%s is %s in the cluster and %s in the inventory", id, o.uid, entry.UID)
		}
	}
	if s.quiet(t); len(s.layers) > 0 && report.Layers[0].Complete {
		if layer := s.layers[0]; s.stored.Reached[layer.Key] != len(layer.Stages) {
			t.Errorf("complete with %d of %d stages", s.stored.Reached[layer.Key], len(layer.Stages))
		}
		s.twice(t)
	}
}

// twice applies the present content with a new engine without inventory: nothing changes.
func (s *history) twice(t *rapid.T) {
	before := s.contents()
	s.reimport(s.key)
	s.settle(t)
	if diff := cmp.Diff(before, s.contents()); diff != "" {
		t.Errorf("applied twice (-once +twice):\n%s", diff)
	}
}

// contents returns the values of all objects that are not foreign.
func (s *history) contents() map[types.UID]map[string]string {
	contents := map[types.UID]map[string]string{}
	for _, o := range s.objects {
		if _, theirs := s.foreign[o.uid]; !theirs {
			contents[o.uid] = valuesOf(o, "")
		}
	}
	return contents
}

// compare checks that an object has the values of its manifest. An object of another owner
// that we never applied must be unchanged.
func (s *history) compare(t *rapid.T, step stage.Step, o *thing) {
	if o == nil {
		t.Errorf("%s is missing", step.ID)
		return
	}
	if value, theirs := s.foreign[o.uid]; theirs && !s.applied[o.uid] {
		if have := o.fields["data:value"].value; have != value {
			t.Errorf("%s of somebody else says %q, want %q", step.ID, have, value)
		}
		return
	}
	if _, replaced := s.foreign[o.uid]; !replaced && s.strange(o.uid) && s.died > 0 {
		return // the engine does not always recognise it
	}
	if s.released[o.uid] && s.stored.Entries[step.ID].UID != o.uid {
		return // it was released, and an older store has an entry of another object
	}
	fields, err := flatten(s.bodies[step.Digest])
	if err != nil {
		t.Fatalf("%v", err)
	}
	fields["labels:"+testNames().ChainLabel] = "argocd"
	fields["annotations:"+testNames().AppliedAnnotation] = string(step.Digest)
	for _, path := range s.stored.Entries[step.ID].Yielded {
		// A yielded field belongs to another manager.
		if key := strings.Replace(path, "data.", "data:", 1); len(o.fields[key].by) > 0 && !slices.Contains(o.fields[key].by, "penstock/argocd") {
			fields[key] = o.fields[key].value
		}
	}
	for path, want := range fields {
		if have := o.fields[path].value; have != want {
			t.Errorf("%s: %s is %q, want %q (%+v, recorded as %+v)", step.ID, path, have, want, o, s.stored.Entries[step.ID])
		}
	}
	_, released := s.released[o.uid]
	for path, field := range o.fields {
		if released && (len(field.by) == 0 || field.by[0] == managedfields.BeforeFirstApply) {
			continue // released fields have no owner, and are not taken back
		}
		if _, wanted := fields[path]; !wanted && strings.HasPrefix(path, "data:") {
			t.Errorf("%s: %s is in no manifest and still there (%+v)", step.ID, path, o)
		}
	}
}

// quiet: a chain at rest sends no requests, even in a new process that has found the objects
// without our label again.
func (s *history) quiet(t *rapid.T) {
	s.spent()
	if _, err := s.pass(); err != nil {
		t.Fatalf("reconciling: %v", err)
	}
	if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
		t.Errorf("a pass over what is at rest made requests: %v %v", writes, reads)
	}
}
