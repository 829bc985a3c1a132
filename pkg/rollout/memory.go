package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// Back-off of one object, doubling from the first to the last.
const (
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
	// fightAllowance is how often an object is repaired at once within
	// fightWindow; after that each repair waits twice as long as the one before.
	fightAllowance = 5
	fightWindow    = 10 * time.Minute
	// settleFallback is when to look again at what an event should have told.
	settleFallback = 30 * time.Second
)

// memory is what the engine remembers of an owner between passes. All of it may
// be lost: it saves requests and time, it never decides what is right.
type memory struct {
	// hidden objects exist but have not our label: they are watched by name.
	hidden map[manifest.ID]bool
	// passed preflight checks, by what was checked.
	passed map[manifest.ID]attempt
	// failed attempts and when to try again.
	failed map[manifest.ID]failedAttempt
	// repairs of drifted objects.
	repairs map[manifest.ID]repairs
	// deleted are the objects that we sent a delete for, by uid.
	deleted map[manifest.ID]types.UID
	// interests that the observer was told last.
	interests []observe.Interest
}

// attempt identifies a write: the same content onto the same live object.
type attempt struct {
	digest manifest.Digest
	// resourceVersion of the live object; empty for none.
	resourceVersion string
}

type failedAttempt struct {
	attempt
	failure Failure
	count   int
	until   time.Time
}

type repairs struct {
	count int
	last  time.Time
}

func newMemory() *memory {
	return &memory{
		hidden:  map[manifest.ID]bool{},
		passed:  map[manifest.ID]attempt{},
		failed:  map[manifest.ID]failedAttempt{},
		repairs: map[manifest.ID]repairs{},
		deleted: map[manifest.ID]types.UID{},
	}
}

// watched is true when the observer was told exactly this before.
func (m *memory) watched(interests []observe.Interest) bool {
	same := slices.EqualFunc(m.interests, interests, func(a, b observe.Interest) bool {
		return a.ID == b.ID && a.Version == b.Version && a.ByName == b.ByName &&
			a.Reads.Whole == b.Reads.Whole && a.Reads.Status == b.Reads.Status &&
			slices.EqualFunc(a.Reads.Fields, b.Reads.Fields, slices.Equal[[]string])
	})
	m.interests = interests
	return same
}

// retry notes a failed attempt and returns how long to wait for the next.
func (m *memory) retry(id manifest.ID, what attempt, failure Failure, now time.Time, jitter func(time.Duration) time.Duration) time.Duration {
	previous := m.failed[id]
	count := 0
	if previous.attempt == what {
		count = previous.count + 1
	}
	wait := jitter(backoff(count))
	m.failed[id] = failedAttempt{attempt: what, failure: failure, count: count, until: now.Add(wait)}
	return wait
}

// done forgets the failures and checks of an object that was written.
func (m *memory) done(id manifest.ID) {
	delete(m.failed, id)
	delete(m.passed, id)
	delete(m.hidden, id)
}

// patience returns how long to leave an object alone that changes all the time.
func (m *memory) patience(id manifest.ID, now time.Time) time.Duration {
	r := m.repairs[id]
	if r.count < fightAllowance || now.Sub(r.last) > fightWindow {
		return 0
	}
	return max(0, r.last.Add(backoff(r.count-fightAllowance+2)).Sub(now))
}

// looked counts a look at (and perhaps a repair of) an object that had changed.
func (m *memory) looked(id manifest.ID, now time.Time) {
	r := m.repairs[id]
	if now.Sub(r.last) > fightWindow {
		r = repairs{}
	}
	m.repairs[id] = repairs{count: r.count + 1, last: now}
}

// backoff doubles from firstRetry to lastRetry.
func backoff(count int) time.Duration {
	wait := firstRetry
	for range count {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}
