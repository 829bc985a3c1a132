package rollout

import (
	"maps"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Back-off of one object, doubling from the first to the last.
const (
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
	// unservedRetry bounds the back-off while the kind of an object is not served: what
	// cures that is a definition, which need not be one that is watched.
	unservedRetry = 30 * time.Second
	// settledFor is the time for which findings about an unchanged object are reused.
	settledFor = 10 * time.Minute
	// overtakenAllowance is in how many passes in a row a write may come too late
	// before the next one waits.
	overtakenAllowance = 3
	// maxHidden bounds the objects of a chain that are watched by name.
	maxHidden = 50
	// settleFallback is the delay of the next look if an expected event is missing.
	settleFallback = 30 * time.Second
)

// memory has the engine's facts of an owner between passes. All of it may be lost: it saves
// requests and time, but decides nothing.
type memory struct {
	// hidden objects exist but have not our label: they are watched by name.
	hidden map[manifest.ID]bool
	// found are objects that exist without our label and are to be adopted or
	// repaired, as they were read last: no watch shows them.
	found map[manifest.ID]observe.Observation
	// passed preflight checks, by the manifest and what it would be written onto.
	passed map[manifest.Ref]check
	// failed attempts and when to try again, by manifest: while a newer layer
	// fails, an older one goes on with content of its own. Each has its time: whatever
	// was not observed to change is tried again then.
	failed map[manifest.Ref]failedAttempt
	// repairs of drifted objects.
	repairs map[manifest.ID]repairs
	// deleted are the objects that accepted a delete of ours.
	deleted map[manifest.ID]deletion
	// judged has the faults of custom resources of a layer, by its key (see conform).
	judged map[string]conformity
	// versions are those that objects which have to go are served in, where the recorded
	// one is not any more: their watch uses it.
	versions map[manifest.ID]string
	// refusals have the reason and the beginning of each refusal, by manifest: an older layer may
	// be refused for another reason.
	refusals map[manifest.Ref]refusal
	// looks are for causes, of the objects that are not ready now.
	looks map[manifest.ID]*look
	// inside has the content that would be deleted with objects, and that a user must answer for.
	inside map[manifest.ID]inside
	// detains has the content that detains objects which are being deleted.
	detains map[manifest.ID]inside
	// overtaken are the objects that others kept writing to while we did.
	overtaken map[manifest.ID]overtaken
	// existing are the create-only objects that were there, at which version: a
	// watch that says otherwise at an older one is late.
	existing map[manifest.ID]string
	// removing tells for Jobs that finished whether they remove themselves.
	removing map[manifest.Ref]bool
	// verdicts of probes that users wrote, and what these may cost now.
	verdicts  map[gateKey]judgement
	allowance allowance
}

// overtaken counts the passes in a row in which every write to an object came too
// late.
type overtaken struct {
	count int
	until time.Time
}

// attempt is the state that a manifest was tried on: the live object, or its absence. When that
// changes, so may the answer.
type attempt struct {
	presence observe.Presence
	// resourceVersion of a present object.
	resourceVersion string
	// policy of a shared object: what may be written onto which state.
	policy string
	// before is the stage, counted from 1, for which a check counts as passed only
	// as long as it is not reached; 0 for one that passed.
	before int
}

// check is one that passed, and until when that is believed: an object that no watch shows
// may have come meanwhile, and a policy.
type check struct {
	attempt
	until time.Time
}

type failedAttempt struct {
	attempt
	failure Failure
	count   int
	until   time.Time
}

// deletion is an object at the time when its deletion was accepted. Until the time until, a watch
// that still shows the object unchanged counts as lagging.
type deletion struct {
	targetclient.Precondition
	until time.Time
}

// refusal holds the server's reason for refusing an object, and the time of the first refusal.
type refusal struct {
	reason string
	since  time.Time
}

type repairs struct {
	count int
	last  time.Time
	// lost says what had been changed when the object was read last.
	lost string
}

func newMemory() *memory {
	return &memory{
		hidden:    map[manifest.ID]bool{},
		found:     map[manifest.ID]observe.Observation{},
		passed:    map[manifest.Ref]check{},
		failed:    map[manifest.Ref]failedAttempt{},
		repairs:   map[manifest.ID]repairs{},
		deleted:   map[manifest.ID]deletion{},
		judged:    map[string]conformity{},
		versions:  map[manifest.ID]string{},
		refusals:  map[manifest.Ref]refusal{},
		looks:     map[manifest.ID]*look{},
		inside:    map[manifest.ID]inside{},
		detains:   map[manifest.ID]inside{},
		overtaken: map[manifest.ID]overtaken{},
		existing:  map[manifest.ID]string{},
		removing:  map[manifest.Ref]bool{},
		verdicts:  map[gateKey]judgement{},
	}
}

// remembered has the engine's facts of one object.
type remembered struct {
	late     overtaken
	failed   failedAttempt
	passed   check
	repairs  repairs
	deleted  deletion
	existing string
}

// of returns what is remembered of an object and its manifest.
func (m *memory) of(ref manifest.Ref) remembered {
	return remembered{m.overtaken[ref.ID], m.failed[ref], m.passed[ref], m.repairs[ref.ID], m.deleted[ref.ID], m.existing[ref.ID]}
}

// retry notes a failed attempt and returns how long to wait for the next.
func (m *memory) retry(ref manifest.Ref, what attempt, failure Failure, now time.Time, jitter func(time.Duration) time.Duration) time.Duration {
	count := 0
	if previous, again := m.failed[ref]; again && previous.attempt == what {
		count = previous.count + 1
	}
	wait := backoff(count)
	if failure.Reason == ReasonNotServed {
		wait = min(wait, unservedRetry)
	}
	wait = jitter(wait)
	m.failed[ref] = failedAttempt{attempt: what, failure: failure, count: count, until: now.Add(wait)}
	return wait
}

// settle keeps a failure that stays what it is while the object does.
func (m *memory) settle(ref manifest.Ref, what attempt, failure Failure, now time.Time) {
	m.failed[ref] = failedAttempt{attempt: what, failure: failure, until: now.Add(settledFor)}
}

// done forgets what was remembered of attempts at a manifest that was written, and of its object before.
func (m *memory) done(ref manifest.Ref) {
	forget(&m.failed, ref)
	forget(&m.passed, ref)
	forget(&m.hidden, ref.ID)
	forget(&m.found, ref.ID)
	forget(&m.deleted, ref.ID)
	forget(&m.detains, ref.ID)
	forget(&m.overtaken, ref.ID)
	forget(&m.versions, ref.ID)
}

// forget deletes an entry. A map keeps the memory of all that it ever had, so one that is
// empty now is replaced: each chain has had a check of each of its objects.
func forget[K comparable, V any](m *map[K]V, key K) {
	if _, found := (*m)[key]; !found {
		return
	}
	delete(*m, key)
	if len(*m) == 0 {
		*m = map[K]V{}
	}
}

// lag notes that all writes to an object came too late, and returns how long to leave
// it alone. Each of them brings an event and with it the next pass, so that without a
// wait two writers would keep each other busy.
func (m *memory) lag(id manifest.ID, now time.Time, jitter func(time.Duration) time.Duration) time.Duration {
	o := m.overtaken[id]
	o.count++
	wait := time.Duration(0)
	if o.count >= overtakenAllowance {
		wait = jitter(backoff(o.count - overtakenAllowance))
	}
	o.until = now.Add(wait)
	m.overtaken[id] = o
	return wait
}

// keep forgets all that was remembered of manifests and objects that nobody wants any more.
func (m *memory) keep(wanted func(manifest.Ref) bool, known func(manifest.ID) bool) {
	maps.DeleteFunc(m.failed, func(ref manifest.Ref, _ failedAttempt) bool { return !wanted(ref) })
	maps.DeleteFunc(m.passed, func(ref manifest.Ref, _ check) bool { return !wanted(ref) })
	maps.DeleteFunc(m.removing, func(ref manifest.Ref, _ bool) bool { return !wanted(ref) })
	maps.DeleteFunc(m.inside, func(id manifest.ID, _ inside) bool { return !known(id) })
	maps.DeleteFunc(m.detains, func(id manifest.ID, _ inside) bool { return !known(id) })
	maps.DeleteFunc(m.overtaken, func(id manifest.ID, _ overtaken) bool { return !known(id) })
	maps.DeleteFunc(m.hidden, func(id manifest.ID, _ bool) bool { return !known(id) })
	maps.DeleteFunc(m.deleted, func(id manifest.ID, _ deletion) bool { return !known(id) })
	maps.DeleteFunc(m.versions, func(id manifest.ID, _ string) bool { return !known(id) })
	maps.DeleteFunc(m.repairs, func(id manifest.ID, _ repairs) bool { return !known(id) })
	// An object that was found was checked just before, or is to be taken over.
	checked := map[manifest.ID]bool{}
	for ref := range m.passed {
		checked[ref.ID] = true
	}
	maps.DeleteFunc(m.found, func(id manifest.ID, _ observe.Observation) bool { return !checked[id] && !known(id) })
}

// small is true while there is nothing that could be of an object that nobody wants.
func (m *memory) small() bool {
	return len(m.failed)+len(m.removing)+len(m.inside)+len(m.detains)+len(m.passed)+len(m.found)+len(m.overtaken)+len(m.existing)+len(m.hidden)+len(m.deleted)+len(m.versions)+len(m.repairs) == 0
}
