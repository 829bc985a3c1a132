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
	// unservedRetry limits the back-off while the kind of an object is not served. A new definition
	// ends that state, which the engine does not always watch.
	unservedRetry = 30 * time.Second
	// settledFor is the lifetime of cached findings about an unchanged object.
	settledFor = 10 * time.Minute
	// overtakenAllowance is the number of consecutive passes in which a write may be too late
	// before the next write waits.
	overtakenAllowance = 3
	// maxHidden bounds the objects of a chain that are watched by name.
	maxHidden = 50
	// settleFallback is the delay of the next check if an expected event is missing.
	settleFallback = 30 * time.Second
)

// memory holds the engine's findings about an owner between passes. It saves requests and time. Its
// loss changes no decision.
type memory struct {
	// hidden are the objects that exist without the chain's label. They are watched by name.
	hidden map[manifest.ID]bool
	// found are the objects that exist without the chain's label and are to be adopted or repaired,
	// as last read. No watch shows them.
	found map[manifest.ID]observe.Observation
	// passed are the preflight checks that succeeded, by manifest, with the state that the manifest
	// was tried on.
	passed map[manifest.Ref]check
	// failed are the failed attempts with the time of the next try, by manifest. An older layer has
	// other manifests, so it continues while a newer layer fails. The time is needed because the
	// cause of a failure may change without an event.
	failed  map[manifest.Ref]failedAttempt
	repairs map[manifest.ID]repairs
	// deleted are the objects whose deletion the server accepted.
	deleted map[manifest.ID]deletion
	// judged has the faults of custom resources of a layer, by its key (see conform).
	judged map[string]conformity
	// versions are the served API versions of objects that must be deleted and whose recorded
	// version is not served any more. Their watches use them.
	versions map[manifest.ID]string
	// refusals are the reason and the first time of each refusal, by manifest: an older layer may
	// be refused for another reason.
	refusals map[manifest.Ref]refusal
	// looks are the searches for causes, for objects that are not ready.
	looks map[manifest.ID]*look
	// inside is the content that would be deleted with an object, and that a user must acknowledge.
	inside map[manifest.ID]inside
	// detains is the content that delays the deletion of an object.
	detains map[manifest.ID]inside
	// overtaken are the objects that other writers kept changing during our writes.
	overtaken map[manifest.ID]overtaken
	// existing are the versions of the create-only objects that existed. A watch that reports such
	// an object absent at an older version lags.
	existing map[manifest.ID]string
	// removing records for a finished Job whether its spec sets ttlSecondsAfterFinished.
	removing map[manifest.Ref]bool
	// verdicts of user-written probes, and the cost that these probes may spend now.
	verdicts  map[gateKey]judgement
	allowance allowance
}

type overtaken struct {
	count int
	until time.Time
}

// attempt is the state that a manifest was tried on: the live object, or its absence. If that state
// changes, the result may change.
type attempt struct {
	presence observe.Presence
	// resourceVersion of a present object.
	resourceVersion string
	// policy of a shared object: the state in which it may be written.
	policy string
	// before is the number of a stage, from 1: the check counts as passed only until that stage is
	// reached. 0 means that the check passed without this condition.
	before int
}

// check is a passed check, and the time until which it is believed. Without an event, an object
// that no watch shows may have been created, or a policy may have changed.
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

// deletion identifies an object whose deletion was accepted. Until the time until, a watch that
// still shows the object unchanged counts as lagging.
type deletion struct {
	targetclient.Precondition
	until time.Time
}

type refusal struct {
	reason string
	since  time.Time
}

type repairs struct {
	count int
	last  time.Time
	// lost describes the changed values of the object when it was last read.
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

type remembered struct {
	late     overtaken
	failed   failedAttempt
	passed   check
	repairs  repairs
	deleted  deletion
	existing string
}

func (m *memory) of(ref manifest.Ref) remembered {
	return remembered{m.overtaken[ref.ID], m.failed[ref], m.passed[ref], m.repairs[ref.ID], m.deleted[ref.ID], m.existing[ref.ID]}
}

// retry records a failed attempt and returns the wait before the next attempt.
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

// settle keeps a failure that lasts as long as the object is unchanged.
func (m *memory) settle(ref manifest.Ref, what attempt, failure Failure, now time.Time) {
	m.failed[ref] = failedAttempt{attempt: what, failure: failure, until: now.Add(settledFor)}
}

// done drops the findings about earlier attempts after a manifest was written.
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

// forget deletes an entry. It replaces an empty map, because a Go map never shrinks, and each
// object of a chain was checked once.
func forget[K comparable, V any](m *map[K]V, key K) {
	if _, found := (*m)[key]; !found {
		return
	}
	delete(*m, key)
	if len(*m) == 0 {
		*m = map[K]V{}
	}
}

// lag records that a write to an object was too late, and returns how long to wait. Each such write
// causes an event and the next pass, so without a wait two writers would keep each other busy.
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
	// An object in found was checked just before, or is to be adopted.
	checked := map[manifest.ID]bool{}
	for ref := range m.passed {
		checked[ref.ID] = true
	}
	maps.DeleteFunc(m.found, func(id manifest.ID, _ observe.Observation) bool { return !checked[id] && !known(id) })
}

// small reports whether the memory is empty, so that there is nothing to drop.
func (m *memory) small() bool {
	return len(m.failed)+len(m.removing)+len(m.inside)+len(m.detains)+len(m.passed)+len(m.found)+len(m.overtaken)+len(m.existing)+len(m.hidden)+len(m.deleted)+len(m.versions)+len(m.repairs) == 0
}
