package replicas

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/retention"
)

// journalAnnotation is the annotation that writers edit. Its value is the number of the edit.
const journalAnnotation = "example.com/journal"

// journal records the writers' requests before they are sent, and the answers after that. It
// outlives all processes. At the end the store is compared with it.
type journal struct {
	mu      sync.Mutex
	entries map[string]*entry // by name of the revision
	// rollbacks maps the cause of a rollback to the acknowledged revision, or to "" until it is
	// acknowledged.
	rollbacks map[string]string
	acks      []ack
	tally     map[string]int
	wrong     []string
	// failed describes the requests that were not answered.
	failed []string
	// last is the time of the last acknowledged write, and gaps is the longest time between two
	// acknowledged writes, for each way to the API.
	last map[way]time.Time
	gaps map[way]time.Duration
}

// entry is the known state of a revision.
type entry struct {
	name    string
	created bool
	// digest is the digest of the first object of an acknowledged create.
	digest string
	// text is the last acknowledged value of the annotation. texts are possible later values, whose
	// edits were not answered.
	text  string
	texts []string
	// inherited is true for a revision from a rollback until its first edit: it has the annotations
	// of the restored revision.
	inherited bool
	// deleting is true once a deletion was requested, deleted once it was acknowledged.
	deleting, deleted bool
}

// ack is an acknowledged write, which every watcher must see.
type ack struct {
	name string
	// version is 0 if the answer did not contain it. Then any event of the revision counts.
	version uint64
	deleted bool
}

func newJournal() *journal {
	return &journal{entries: map[string]*entry{}, rollbacks: map[string]string{}, tally: map[string]int{},
		last: map[way]time.Time{}, gaps: map[way]time.Duration{}}
}

// count adds one to a tally.
func (j *journal) count(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally[what]++
}

// unanswered records a request that was not answered, and the error.
func (j *journal) unanswered(what string, err error) {
	j.count(what + " not answered")
	j.count("(" + kindOf(err) + ")")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = append(j.failed, fmt.Sprintf("%s: %v", what, err))
}

// failures returns all unanswered requests so far.
func (j *journal) failures() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.failed)
}

// violation records a violation.
func (j *journal) violation(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

// acknowledged returns the number of acknowledged writes so far.
func (j *journal) acknowledged() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.acks)
}

// answered records the time of an acknowledged write.
func (j *journal) answered(by way) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gaps[by] = max(j.gaps[by], time.Since(j.last[by]))
	j.last[by] = time.Now()
}

// listen starts measuring the silence.
func (j *journal) listen() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, by := range []way{throughHost, straightOn} {
		j.last[by], j.gaps[by] = time.Now(), 0
	}
}

// silence returns the longest time without an acknowledged write, up to now.
func (j *journal) silence(by way) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(j.gaps[by], time.Since(j.last[by]))
}

// creating records a revision that may exist from now on.
func (j *journal) creating(name, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries[name] == nil {
		j.entries[name] = &entry{name: name, text: text}
	}
}

// created records an acknowledged revision. version is empty if only its name is known.
func (j *journal) created(name, version, digest string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[name]
	if e == nil {
		e = &entry{name: name}
		j.entries[name] = e
	}
	e.created, e.digest = true, digest
	j.acks = append(j.acks, ack{name: name, version: number(version)})
}

// editing records a text that a revision may have from now on.
func (j *journal) editing(name, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[name].texts = append(j.entries[name].texts, text)
}

// edited records an acknowledged text. Each edit names the version that it changes, so no earlier
// edit can be applied after it.
func (j *journal) edited(name, text, version string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[name]
	e.text, e.texts, e.inherited = text, nil, false
	j.acks = append(j.acks, ack{name: name, version: number(version)})
}

// rollingBack records the cause of a rollback, for which a revision may exist from now on.
func (j *journal) rollingBack(cause string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rollbacks[cause] = ""
}

// rolledBack records the revision of an acknowledged rollback.
func (j *journal) rolledBack(cause, name string) {
	j.created(name, "", "")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rollbacks[cause] = name
	j.entries[name].inherited = true
}

func (j *journal) deleting(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[name].deleting = true
}

func (j *journal) deleted(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[name].deleted = true
	j.acks = append(j.acks, ack{name: name, deleted: true})
}

// number parses a resourceVersion. It returns 0 for an empty or invalid version.
func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// judge compares the store with the journal: it must have every acknowledged write and nothing
// else.
func (j *journal) judge(revisions []olmv1alpha1.ClusterExtensionRevision) {
	j.mu.Lock()
	defer j.mu.Unlock()
	say := func(format string, args ...any) { j.wrong = append(j.wrong, fmt.Sprintf(format, args...)) }
	there := map[string]bool{}
	causes := map[string][]string{}
	for _, revision := range revisions {
		there[revision.Name] = true
		cause := revision.Annotations[olmv1alpha1.ChangeCauseAnnotation]
		if cause != "" {
			causes[cause] = append(causes[cause], revision.Name)
		}
		e := j.entries[revision.Name]
		_, rolledBack := j.rollbacks[cause]
		switch {
		case rolledBack && (e == nil || !e.created):
			// The rollback was not answered. Its number may be the number of a refused create.
			continue
		case e == nil:
			say("%s is there and nobody wrote it", revision.Name)
			continue
		}
		if e.deleted {
			say("%s is there and its deletion was acknowledged", revision.Name)
		}
		if text := revision.Annotations[journalAnnotation]; !e.inherited && text != e.text && !slices.Contains(e.texts, text) {
			say("%s says %q, acknowledged was %q, and %q may be", revision.Name, text, e.text, e.texts)
		}
		if digest := digestOf(&revision); e.digest != "" && digest != e.digest {
			say("%s has content %s, acknowledged was %s", revision.Name, digest, e.digest)
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		names := causes[cause]
		if acknowledged := j.rollbacks[cause]; len(names) > 1 || acknowledged != "" && names[0] != acknowledged {
			say("the rollback %q is there as %q, acknowledged was %q", cause, names, acknowledged)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.entries)) {
		if e := j.entries[name]; e.created && !e.deleting && !there[name] && !retired(name, revisions) {
			say("%s was acknowledged and is not there", name)
		}
	}
}

// retired reports whether retention may have deleted a missing revision: its chain has the full
// number of newer archived revisions.
func retired(name string, revisions []olmv1alpha1.ClusterExtensionRevision) bool {
	chain, n := chainOf(name)
	newer := 0
	for _, other := range revisions {
		if of, number := chainOf(other.Name); of == chain && other.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived && number > n {
			newer++
		}
	}
	return newer >= retention.Keep
}

// digestOf returns the digest of a revision's first object.
func digestOf(revision *olmv1alpha1.ClusterExtensionRevision) string {
	for _, phase := range revision.Spec.Phases {
		for _, o := range phase.Objects {
			return o.Digest
		}
	}
	return ""
}
