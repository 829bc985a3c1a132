package fleet

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// target is the real state of a cluster.
type target struct {
	away, absent, sick bool
	uid, change        string
	content            string
	// attempt is the mark of the last write. rolling is true until its rollout ends.
	attempt int64
	rolling bool
	failed  bool
}

// memory holds the conclusions of a witness from the observations of the stored steps. The witness
// does not read the states of the rollout.
type memory struct {
	// since is the time since when every look showed the new content as healthy; zero if no look
	// did.
	since map[string]time.Time
	// last is the time of the last such look.
	last map[string]time.Time
	// soaked holds the clusters that were healthy for the whole soak time until now. ever holds the
	// clusters that were healthy that long at any time.
	soaked, ever map[string]bool
	// changing holds the clusters that were written, until a look shows the end.
	changing map[string]bool
}

func (m memory) clone() memory {
	return memory{maps.Clone(m.since), maps.Clone(m.last), maps.Clone(m.soaked), maps.Clone(m.ever), maps.Clone(m.changing)}
}

type world struct {
	plan     *Plan
	progress Progress
	now      time.Time
	targets  map[string]*target
	seen     map[string]Observation
	frozen   bool
	closed   bool
	room     int
	blind    bool
	memory
	// Decisions of users: approved digests and skipped clusters.
	approved      map[string]bool
	approvedWaves map[string]bool
	skipped       map[string]bool
	halted        bool
}

func newWorld(t *rapid.T) *world {
	w := &world{
		plan: &Plan{Deadline: 20 * time.Minute}, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC), room: rapid.IntRange(1, 3).Draw(t, "room"),
		targets: map[string]*target{}, seen: map[string]Observation{}, approved: map[string]bool{},
		approvedWaves: map[string]bool{}, skipped: map[string]bool{},
		memory: memory{since: map[string]time.Time{}, last: map[string]time.Time{}, soaked: map[string]bool{}, ever: map[string]bool{}, changing: map[string]bool{}},
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "waves") {
		w.plan.Waves = append(w.plan.Waves, Wave{
			Name: fmt.Sprintf("wave-%d", n), Soak: time.Duration(rapid.IntRange(0, 10).Draw(t, "soak")) * time.Minute,
			AsksAgain: rapid.Bool().Draw(t, "asks again"),
			Bounds:    Bounds{rapid.IntRange(1, 2).Draw(t, "max unavailable"), rapid.IntRange(0, 1).Draw(t, "max failures"), rapid.IntRange(0, 1).Draw(t, "max unreachable")},
			Window:    rapid.SampledFrom([]*Window{nil, nil, {Schedule: "15 * * * *", TimeZone: "UTC", Duration: 30 * time.Minute}}).Draw(t, "window"),
		})
	}
	for n := range rapid.IntRange(1, 7).Draw(t, "clusters") {
		name := fmt.Sprintf("cluster-%d", n)
		cluster := Cluster{
			Name: name, UID: "uid of " + name, Wave: rapid.SampledFrom(w.plan.Waves).Draw(t, "wave").Name,
			Before: rapid.SampledFrom([]string{"", "old", "older", "new"}).Draw(t, "before"), After: "new",
		}
		if rapid.IntRange(0, 2).Draw(t, "present") == 0 {
			cluster.Before, cluster.Present = "new", true
		}
		w.plan.Clusters = append(w.plan.Clusters, cluster)
		w.targets[name] = &target{uid: cluster.UID, change: cluster.Change(), content: cluster.Before, sick: cluster.Present && rapid.Bool().Draw(t, "sick")}
	}
	if err := w.plan.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) any(t *rapid.T) (string, *target) {
	name := rapid.SampledFrom(w.plan.Clusters).Draw(t, "cluster").Name
	return name, w.targets[name]
}

func (w *world) look(name string) {
	one := w.targets[name]
	seen := w.seen[name]
	seen.At, seen.Unreachable = w.now, one.away
	if !one.away {
		seen = Observation{At: w.now, UID: one.uid, Change: one.change, Attempt: one.attempt, Content: one.content, Failed: one.failed, Healthy: !one.sick && !one.rolling}
		if one.rolling {
			seen.Content = ""
		}
	}
	w.seen[name] = seen
}

func (w *world) situation() Situation {
	s := Situation{Now: w.now, Frozen: w.frozen, Closed: w.closed, Room: w.room, Members: map[string]bool{}, MembersKnown: !w.blind, Clusters: maps.Clone(w.seen)}
	for name, one := range w.targets {
		s.Members[name] = !one.absent
		if one.rolling {
			s.Room--
		}
	}
	return s
}

// conclude returns the memory of the witness after a situation.
func (w *world) conclude(s Situation) memory {
	m := w.memory.clone()
	for _, cluster := range w.plan.Clusters {
		seen, observed := s.Clusters[cluster.Name]
		at := w.progress.at(cluster.Name)
		known := seen.Attempt == at.Attempt || !m.since[cluster.Name].IsZero() || m.soaked[cluster.Name]
		fresh := observed && !seen.Unreachable && seen.UID == cluster.UID && known && at.Attempt > 0 && !seen.At.Before(at.Since)
		switch {
		case fresh && seen.Content == "new" && seen.Healthy:
			if m.since[cluster.Name].IsZero() || seen.At.Sub(m.last[cluster.Name]) > 5*time.Minute {
				m.since[cluster.Name] = seen.At
			}
			m.last[cluster.Name] = seen.At
			if !seen.At.Before(m.since[cluster.Name].Add(w.plan.soak(cluster))) {
				m.soaked[cluster.Name], m.ever[cluster.Name] = true, true
			}
			delete(m.changing, cluster.Name)
		case fresh:
			delete(m.since, cluster.Name)
			delete(m.soaked, cluster.Name)
			if seen.Failed || seen.Content != "" && seen.Content != "new" {
				delete(m.changing, cluster.Name)
			}
		case observed && seen.Unreachable && !m.soaked[cluster.Name]:
			delete(m.since, cluster.Name)
		}
	}
	return m
}

// judge checks the rule for each cluster that a step lets begin.
func (w *world) judge(t *rapid.T, s Situation, m memory, next Progress) {
	for _, cluster := range w.plan.Clusters {
		if next.at(cluster.Name).Attempt == w.progress.at(cluster.Name).Attempt {
			continue
		}
		if cluster.Present {
			t.Fatalf("%s has the content already, and begins", cluster.Name)
		}
		broken := func(format string, args ...any) {
			t.Fatalf("%s begins at %s, although %s\nbefore %+v\nafter %+v\nseen %+v", cluster.Name, w.now.Format("15:04"), fmt.Sprintf(format, args...), w.progress, next, s.Clusters)
		}
		wave := w.plan.Waves[slices.IndexFunc(w.plan.Waves, func(one Wave) bool { return one.Name == cluster.Wave })]
		seen, observed := s.Clusters[cluster.Name]
		switch {
		case !w.approved[w.plan.Digest()]:
			broken("nobody approved the plan")
		case wave.AsksAgain && len(w.plan.before(wave.Name)) > 0 && !w.approvedWaves[w.plan.WaveDigest(next, wave.Name)]:
			broken("nobody approved its wave as it is")
		case !observed || seen.Unreachable || seen.UID != cluster.UID || seen.Change != cluster.Change():
			broken("nobody knows that it would see the approved change")
		case s.Frozen || w.halted || s.Closed || w.progress.Ended:
			broken("it is held")
		case wave.Window != nil && (w.now.Minute() < 15 || w.now.Minute() >= 45):
			broken("the window of its wave is closed")
		}
		w.judgeEarlier(cluster, s, m, next, broken)
		w.judgeWave(wave, s, m, next, broken)
	}
	begun := 0
	for _, cluster := range w.plan.Clusters {
		if next.at(cluster.Name).Attempt != w.progress.at(cluster.Name).Attempt {
			begun++
		}
	}
	if begun > max(s.Room, 0) {
		t.Fatalf("%d begin where there is room for %d", begun, s.Room)
	}
}

// judgeEarlier checks that every cluster of the earlier waves has run exactly the new content for
// the soak time. The exceptions are clusters within the bounds, and clusters that users named.
func (w *world) judgeEarlier(cluster Cluster, s Situation, m memory, next Progress, broken func(string, ...any)) {
	for _, wave := range w.plan.Waves {
		if wave.Name == cluster.Wave {
			return
		}
		failed, away, presentAway, left, succeeded := 0, 0, 0, 0, 0
		for _, earlier := range w.plan.of(wave.Name) {
			state := next.at(earlier.Name).State
			seen, observed := s.Clusters[earlier.Name]
			switch {
			case earlier.Present && state == Present && observed && seen.Unreachable:
				presentAway++
			case earlier.Present && state == Present && observed && seen.UID == earlier.UID && seen.Content == "new" && seen.Healthy:
			case m.soaked[earlier.Name], w.progress.Completed && m.ever[earlier.Name]:
				succeeded++
			case w.skipped[earlier.Name] && state == Skipped:
			case state == Leaving:
				left++
			case state == Failed || state == RolledBack:
				failed++
			case state == Deferred && (!observed || seen.Unreachable):
				away++
			default:
				broken("%s of the earlier wave %s is %s", earlier.Name, wave.Name, state)
			}
		}
		if failed > wave.Bounds.MaxFailures || away+presentAway > wave.Bounds.MaxUnreachable || failed+away+left > 0 && succeeded == 0 {
			broken("%d failed, %d are away and %d succeeded in the earlier wave %s", failed, away, succeeded, wave.Name)
		}
	}
}

// judgeWave checks that no more than MaxUnavailable clusters of the wave are changing or unhealthy.
func (w *world) judgeWave(wave Wave, s Situation, m memory, next Progress, broken func(string, ...any)) {
	var unavailable []string
	for _, cluster := range w.plan.of(wave.Name) {
		seen, observed := s.Clusters[cluster.Name]
		state := next.at(cluster.Name).State
		ended := state == Failed || state == RolledBack || state == Skipped
		begins := next.at(cluster.Name).Attempt != w.progress.at(cluster.Name).Attempt
		if cluster.Present && state == Present {
			if !observed || !seen.Unreachable && (seen.UID != cluster.UID || seen.Content != "new" || !seen.Healthy) {
				unavailable = append(unavailable, cluster.Name)
			}
			continue
		}
		unhealthy := state != Skipped && state != Leaving && (!observed || seen.Unreachable && state != Pending && state != Deferred || !seen.Unreachable && (seen.UID == "" || seen.UID == cluster.UID && !seen.Healthy))
		if begins || m.changing[cluster.Name] && !ended || unhealthy {
			unavailable = append(unavailable, cluster.Name)
		}
	}
	if len(unavailable) > wave.Bounds.MaxUnavailable {
		broken("%v of its wave are changing or unhealthy", unavailable)
	}
}

// step is a pass of the caller. The caller may die before it stores the progress, or before it
// writes to the clusters.
func (w *world) step(t *rapid.T) {
	s := w.situation()
	next, report := w.plan.Step(w.progress, s)
	m := w.conclude(s)
	w.judge(t, s, m, next)
	for name := range w.targets { // the clusters that began have used their room
		if next.at(name).Attempt != w.progress.at(name).Attempt {
			s.Room--
		}
	}
	again, _ := w.plan.Step(next, s)
	if diff := cmp.Diff(next, again); diff != "" {
		t.Fatalf("a second step with nothing new does more:\n%s", diff)
	}
	total := 0
	for state, n := range report.Counts {
		if !slices.Contains(States(), state) {
			t.Fatalf("%d clusters are in state %q", n, state)
		}
		total += n
	}
	if total != len(w.plan.Clusters) {
		t.Fatalf("%d clusters are counted of %d: %v", total, len(w.plan.Clusters), report.Counts)
	}
	if report.Phase != Completed && len(report.Waits) == 0 && !w.progress.Ended {
		t.Fatalf("a rollout in phase %s waits for nobody: %+v", report.Phase, next)
	}
	dies := rapid.SampledFrom([]string{"", "", "", "", "", "", "before storing", "before writing"}).Draw(t, "dies")
	if dies == "before storing" {
		return
	}
	for name := range w.targets {
		if next.at(name).Attempt != w.progress.at(name).Attempt {
			m.changing[name] = true
			delete(m.since, name)
			delete(m.soaked, name)
		}
	}
	w.progress, w.memory = next, m
	if dies == "" {
		w.write()
	}
}

// pass is the usual course: rollouts end, the caller looks at most clusters, and time passes.
func (w *world) pass(t *rapid.T) {
	for _, cluster := range w.plan.Clusters {
		if rapid.IntRange(0, 2).Draw(t, "ends") > 0 {
			w.targets[cluster.Name].end("")
		}
		if rapid.IntRange(0, 5).Draw(t, "looks") > 0 {
			w.look(cluster.Name)
		}
	}
	for _, wave := range w.plan.Waves {
		if next, err := w.plan.ApproveWave(w.progress, wave.Name, w.plan.WaveDigest(w.progress, wave.Name)); err == nil && rapid.Bool().Draw(t, "approves") {
			w.progress, w.approvedWaves[w.plan.WaveDigest(w.progress, wave.Name)] = next, true
		}
	}
	w.step(t)
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "minutes")) * time.Minute)
}

func (w *world) write() {
	for name, one := range w.targets {
		if at := w.progress.at(name); (at.State == Updating || at.State == Unknown) && one.attempt != at.Attempt {
			one.attempt, one.rolling, one.failed = at.Attempt, true, false
		}
	}
}

// act is the act of a user, who has seen the present state or an earlier one.
func (w *world) act(t *rapid.T, what string) {
	s := w.situation()
	stale := rapid.Bool().Draw(t, "stale")
	of := func(digest string) string {
		if stale {
			return "sha256:before"
		}
		return digest
	}
	name, _ := w.any(t)
	shown := of(w.plan.Troubles(w.progress, s))
	wave := rapid.SampledFrom(w.plan.Waves).Draw(t, "wave").Name
	var next Progress
	var err error
	switch what {
	case "approve":
		next, err = w.plan.Approve(w.progress, of(w.plan.Digest()))
	case "approve wave":
		next, err = w.plan.ApproveWave(w.progress, wave, of(w.plan.WaveDigest(w.progress, wave)))
	case "resume":
		next, err = w.plan.Resume(w.progress, s, shown)
	case "retry":
		next, err = w.plan.Retry(w.progress, s, shown, []string{name})
	case "skip":
		next, err = w.plan.Skip(w.progress, s, shown, []string{name})
	}
	switch {
	case err == nil && stale:
		t.Fatalf("somebody who has seen something else may %s", what)
	case err != nil && cmp.Diff(next, w.progress) != "":
		t.Fatalf("a refused act changes something: %s", cmp.Diff(w.progress, next))
	case err != nil:
		return
	}
	w.progress = next
	switch what {
	case "approve":
		w.approved[w.plan.Digest()] = true
	case "approve wave":
		w.approvedWaves[w.plan.WaveDigest(w.progress, wave)] = true
	case "resume":
		w.halted = false
	case "skip":
		w.skipped[name] = true
	}
}

// TestProperties checks the rule under random events of the clusters, the caller and the users.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		if rapid.IntRange(0, 5).Draw(t, "approved") > 0 {
			w.progress, _ = w.plan.Approve(w.progress, w.plan.Digest())
			w.approved[w.plan.Digest()] = true
		}
		flip := func(what func(*target) *bool) func(*rapid.T) {
			return func(t *rapid.T) { _, one := w.any(t); at := what(one); *at = !*at }
		}
		acts := map[string]func(*rapid.T){
			"step": w.step, "pass": w.pass, "pass again": w.pass, "pass a third time": w.pass, "pass a fourth time": w.pass,
			"look": func(t *rapid.T) { name, _ := w.any(t); w.look(name) },
			"look at all": func(*rapid.T) {
				for name := range w.targets {
					w.look(name)
				}
			},
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "minutes")) * time.Minute)
			},
			"restart": func(*rapid.T) { w.seen = map[string]Observation{}; w.write() },
			"ends": func(t *rapid.T) {
				_, one := w.any(t)
				one.end(rapid.SampledFrom([]string{"", "", "fails", "rolls back"}).Draw(t, "how"))
			},
			"away":   flip(func(one *target) *bool { return &one.away }),
			"sick":   flip(func(one *target) *bool { return &one.sick }),
			"leaves": flip(func(one *target) *bool { return &one.absent }),
			"swapped": func(t *rapid.T) {
				name, one := w.any(t)
				one.uid = rapid.SampledFrom([]string{"uid of " + name, "another", ""}).Draw(t, "uid")
			},
			"moved": func(t *rapid.T) {
				name, one := w.any(t)
				one.change = rapid.SampledFrom([]string{w.cluster(name).Change(), "another", ""}).Draw(t, "change")
			},
			"changed": func(t *rapid.T) {
				_, one := w.any(t)
				one.content, one.attempt = "other", rapid.SampledFrom([]int64{one.attempt, 77}).Draw(t, "mark")
			},
			"freeze": func(*rapid.T) { w.frozen = !w.frozen },
			"window": func(*rapid.T) { w.closed = !w.closed },
			"blind":  func(*rapid.T) { w.blind = !w.blind },
			"halt":   func(*rapid.T) { w.progress, _ = w.plan.Halt(w.progress); w.halted = true },
		}
		for _, act := range []string{"approve", "approve wave", "resume", "retry", "skip"} {
			acts[act] = func(t *rapid.T) { w.act(t, act) }
		}
		t.Repeat(acts)
		w.calm(t)
	})
}

func (w *world) cluster(name string) Cluster {
	return w.plan.Clusters[slices.IndexFunc(w.plan.Clusters, func(c Cluster) bool { return c.Name == name })]
}

// end ends the rollout of a reachable cluster.
func (one *target) end(how string) {
	if !one.rolling || one.away {
		return
	}
	one.rolling, one.failed = false, how == "fails"
	if how == "" {
		one.content = "new"
	}
}

// calm checks the end: once everything works and users decide, the rollout completes. Then every
// cluster has the new content, except clusters that left or were skipped.
func (w *world) calm(t *rapid.T) {
	w.frozen, w.closed, w.blind, w.room = false, false, false, 100
	for name, one := range w.targets {
		one.away, one.sick, one.absent = false, false, false
		one.uid, one.change = w.cluster(name).UID, w.cluster(name).Change()
		if w.cluster(name).Present {
			one.content = "new"
		}
	}
	var report Report
	for range 40 * (len(w.targets) + 1) {
		for name, one := range w.targets {
			one.end("")
			w.look(name)
		}
		s := w.situation()
		w.progress, report = w.plan.Step(w.progress, s)
		w.write()
		for name := range w.targets {
			if next, err := w.plan.Retry(w.progress, s, w.plan.Troubles(w.progress, s), []string{name}); err == nil {
				w.progress = next
			}
			if w.progress.at(name).State == Leaving { // the rollout does not wait for it
				w.progress, _ = w.plan.Skip(w.progress, s, w.plan.Troubles(w.progress, s), []string{name})
			}
		}
		w.progress, _ = w.plan.Resume(w.progress, s, w.plan.Troubles(w.progress, s))
		w.progress, _ = w.plan.Approve(w.progress, w.plan.Digest())
		for _, wave := range w.plan.Waves {
			w.progress, _ = w.plan.ApproveWave(w.progress, wave.Name, w.plan.WaveDigest(w.progress, wave.Name))
		}
		w.now = w.now.Add(5 * time.Minute)
	}
	for name, one := range w.targets {
		state := w.progress.at(name).State
		if state != Skipped && state != Leaving && state != Present && state != Succeeded || report.Phase != Completed {
			t.Fatalf("in the end the rollout is %s, and %s is %s with %+v: %+v", report.Phase, name, state, one, report)
		}
	}
}
