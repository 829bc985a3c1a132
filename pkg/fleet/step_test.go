package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// story is a rollout with a canary wave and a second wave. Every cluster succeeds, unless the story
// changes an observation.
type story struct {
	t        *testing.T
	plan     *Plan
	progress Progress
	s        Situation
	report   Report
}

// tell begins the story of an approved plan with this many clusters in each wave.
func tell(t *testing.T, canaries, others int) *story {
	t.Helper()
	soak := 10 * time.Minute
	plan := &Plan{Deadline: 30 * time.Minute, Waves: []Wave{
		{Name: "canary", Soak: soak, Bounds: Bounds{MaxUnavailable: 1, MaxFailures: 0, MaxUnreachable: 1}},
		{Name: "rest", Bounds: Bounds{MaxUnavailable: 2, MaxFailures: 1, MaxUnreachable: 1}},
	}}
	for n := range canaries + others {
		wave := "canary"
		if n >= canaries {
			wave = "rest"
		}
		name := fmt.Sprintf("c%02d", n)
		plan.Clusters = append(plan.Clusters, Cluster{Name: name, UID: "uid of " + name, Wave: wave, Before: "old", After: "new"})
	}
	progress, err := plan.Approve(Progress{}, plan.Digest())
	if err != nil {
		t.Fatal(err)
	}
	one := &story{t: t, plan: plan, progress: progress, s: Situation{
		Now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC), Room: 100, MembersKnown: true, Members: map[string]bool{}, Clusters: map[string]Observation{},
	}}
	for _, cluster := range plan.Clusters {
		one.s.Members[cluster.Name] = true
		one.s.Clusters[cluster.Name] = Observation{At: one.s.Now, UID: cluster.UID, Change: cluster.Change(), Content: "old", Healthy: true}
	}
	return one
}

// after lets time pass, observes each cluster, applies a change to the observations, and takes a
// step.
func (s *story) after(passed time.Duration, change func(cluster string, seen *Observation)) *story {
	s.t.Helper()
	for ; passed > longestGap; passed -= longestGap {
		s.after(longestGap, change)
	}
	s.s.Now = s.s.Now.Add(passed)
	for name, seen := range s.s.Clusters {
		at := s.progress.at(name)
		seen.At, seen.Unreachable, seen.Failed = s.s.Now, false, false
		if at.Attempt > seen.Attempt && at.State == Updating {
			seen.Attempt, seen.Content, seen.Healthy = at.Attempt, "new", true
		}
		if change != nil {
			change(name, &seen)
		}
		s.s.Clusters[name] = seen
	}
	s.progress, s.report = s.plan.Step(s.progress, s.s)
	return s
}

func (s *story) is(phase Phase, states ...State) *story {
	s.t.Helper()
	var got []State
	for _, cluster := range s.plan.Clusters {
		got = append(got, s.progress.at(cluster.Name).State)
	}
	if s.report.Phase != phase || !slices.Equal(got, states) {
		s.t.Fatalf("the rollout is %s with %v, want %s with %v; it waits for %+v", s.report.Phase, got, phase, states, s.report.Waits)
	}
	return s
}

func (s *story) waits(reason WaitReason, clusters ...string) *story {
	s.t.Helper()
	for _, wait := range s.report.Waits {
		if wait.Reason == reason && slices.Equal(wait.Clusters, clusters) {
			return s
		}
	}
	s.t.Fatalf("it waits for %+v, want %s of %v", s.report.Waits, reason, clusters)
	return s
}

func only(name string, change func(*Observation)) func(string, *Observation) {
	return func(cluster string, seen *Observation) {
		if cluster == name {
			change(seen)
		}
	}
}

func away(seen *Observation) { seen.Unreachable = true }

func TestWaves(t *testing.T) {
	s := tell(t, 1, 3)
	s.after(0, nil).is(InProgress, Updating, Pending, Pending, Pending).waits(WaitWave, "c00")
	s.after(time.Minute, nil).is(PhaseSoaking, Soaking, Pending, Pending, Pending).waits(WaitSoak, "c00")
	s.after(9*time.Minute, nil).is(PhaseSoaking, Soaking, Pending, Pending, Pending)
	s.after(time.Minute, nil).is(InProgress, Succeeded, Updating, Updating, Pending).waits(WaitUnavailable, "c01", "c02")
	s.after(time.Minute, nil).is(InProgress, Succeeded, Succeeded, Succeeded, Updating)
	s.after(time.Minute, nil).is(Completed, Succeeded, Succeeded, Succeeded, Succeeded)
}

// TestStaleHealth: a cluster that is healthy with the old content does not count as updated.
func TestStaleHealth(t *testing.T) {
	before := func(_ string, seen *Observation) { seen.Attempt, seen.Content = 0, "new" }
	s := tell(t, 1, 1).after(0, before).after(time.Hour/4, before)
	s.is(InProgress, Updating, Pending)
}

// TestSoakBeginsAnew: the soak time begins when the cluster last became healthy. Only an
// observation after the soak time ends it.
func TestSoakBeginsAnew(t *testing.T) {
	s := tell(t, 1, 1).after(0, nil).after(time.Minute, nil)
	s.after(8*time.Minute, only("c00", func(o *Observation) { o.Healthy = false })).is(PhaseSoaking, Soaking, Pending)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Healthy = true }))
	s.after(9*time.Minute, nil).is(PhaseSoaking, Soaking, Pending)
	looked := s.s.Now
	s.after(time.Hour, only("c00", func(o *Observation) { o.At = looked })).is(PhaseSoaking, Soaking, Pending)
	s.after(time.Minute, nil).is(PhaseSoaking, Soaking, Pending) // no observation meanwhile
	s.after(10*time.Minute, nil).is(InProgress, Succeeded, Updating)
}

// TestUnhealthyAgain: while a cluster of an earlier wave is unhealthy again, no cluster of a later
// wave begins.
func TestUnhealthyAgain(t *testing.T) {
	s := tell(t, 1, 3).after(0, nil).after(time.Minute, nil).after(10*time.Minute, nil)
	s.is(InProgress, Succeeded, Updating, Updating, Pending)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Healthy = false })).is(PhaseSoaking, Soaking, Succeeded, Succeeded, Pending)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Healthy = true })).after(10*time.Minute, nil)
	s.is(InProgress, Succeeded, Succeeded, Succeeded, Updating)
}

// TestRoom: the bound of all rollouts holds in addition to the bound of the wave.
func TestRoom(t *testing.T) {
	s := tell(t, 0, 3)
	s.s.Room = 1
	s.after(0, nil).is(InProgress, Updating, Pending, Pending).waits(WaitRoom)
}

// TestFailure: one failure above the bound halts the rollout. A user who has seen it can retry or
// skip the cluster.
func TestFailure(t *testing.T) {
	s := tell(t, 2, 1).after(0, nil).after(time.Minute, only("c00", func(o *Observation) { o.Content = "old" }))
	s.is(PhaseHalted, RolledBack, Pending, Pending).waits(WaitFailures, "c00")
	if _, err := s.plan.Retry(s.progress, s.s, "sha256:before", []string{"c00"}); err == nil || !strings.Contains(err.Error(), "read it again") {
		t.Errorf("a retry of something else: %v", err)
	}
	if _, err := s.plan.Skip(s.progress, s.s, s.plan.Troubles(s.progress, s.s), []string{"c00", "c09"}); err == nil || !strings.Contains(err.Error(), "c09") {
		t.Errorf("a skip of a cluster that is not there: %v", err)
	}
	retried, err := s.plan.Retry(s.progress, s.s, s.plan.Troubles(s.progress, s.s), []string{"c00"})
	if err != nil {
		t.Fatal(err)
	}
	skipped, err := s.plan.Skip(s.progress, s.s, s.plan.Troubles(s.progress, s.s), []string{"c00"})
	if err != nil {
		t.Fatal(err)
	}
	s.progress = retried
	s.after(time.Minute, nil).is(InProgress, Updating, Pending, Pending)
	if attempt := s.progress.at("c00").Attempt; attempt != 2 {
		t.Errorf("it is attempt %d", attempt)
	}
	s.progress = skipped
	s.after(time.Minute, nil).is(InProgress, Skipped, Updating, Pending)
}

// TestAway: a cluster that is unreachable before its turn is deferred, and begins later. A cluster
// that is lost while it changes keeps its place until the deadline.
func TestAway(t *testing.T) {
	s := tell(t, 1, 3)
	s.after(0, only("c01", away)).after(time.Minute, only("c01", away)).after(10*time.Minute, only("c01", away))
	s.is(InProgress, Succeeded, Deferred, Updating, Updating)
	s.after(time.Minute, only("c01", away)).is(Completed, Succeeded, Deferred, Succeeded, Succeeded)
	s.after(time.Minute, nil).is(Completed, Succeeded, Updating, Succeeded, Succeeded)
	s.after(time.Minute, nil).is(Completed, Succeeded, Succeeded, Succeeded, Succeeded)

	s = tell(t, 1, 1).after(0, nil).after(20*time.Minute, only("c00", away))
	s.is(InProgress, Unknown, Pending)
	s.after(10*time.Minute, only("c00", away)).is(PhaseHalted, Failed, Pending).waits(WaitFailures, "c00")
	if reason := s.progress.at("c00").Reason; reason != ReasonDeadlineExceeded {
		t.Errorf("the reason is %s", reason)
	}
}

// TestManyAway: more unreachable clusters than the bound halt the rollout. A wave in which no
// cluster was reached has proved nothing.
func TestManyAway(t *testing.T) {
	tell(t, 3, 1).after(0, func(cluster string, seen *Observation) { seen.Unreachable = cluster < "c02" }).
		is(PhaseHalted, Deferred, Deferred, Pending, Pending).waits(WaitUnreachable, "c00", "c01")
	tell(t, 1, 1).after(0, only("c00", away)).is(PhaseHalted, Deferred, Pending).waits(WaitNoSuccess, "c00")
}

// TestLeave: a single cluster may leave. Many clusters leave together only after a user decided.
// While membership is unknown, no cluster leaves.
func TestLeave(t *testing.T) {
	s := tell(t, 1, 2)
	s.s.Members["c02"] = false
	s.after(0, nil).is(InProgress, Updating, Pending, Leaving)

	s = tell(t, 1, 2)
	s.s.MembersKnown, s.s.Members = false, nil
	s.after(0, nil).is(InProgress, Updating, Pending, Pending)
	s.s.MembersKnown = true
	s.after(time.Minute, nil).waits(WaitLeaving, "c00", "c01", "c02")
	next, err := s.plan.Resume(s.progress, s.s, s.plan.Troubles(s.progress, s.s))
	if err != nil {
		t.Fatal(err)
	}
	s.progress = next
	s.after(time.Minute, nil).is(PhaseHalted, Leaving, Leaving, Leaving).waits(WaitNoSuccess, "c00")
}

// joins gives clusters the new content before the rollout, so that only the other clusters change.
func (s *story) joins(present ...string) *story {
	s.t.Helper()
	for i := range s.plan.Clusters {
		cluster := &s.plan.Clusters[i]
		if !slices.Contains(present, cluster.Name) {
			continue
		}
		cluster.Before, cluster.Present = cluster.After, true
		seen := s.s.Clusters[cluster.Name]
		seen.Content, seen.Change = cluster.After, cluster.Change()
		s.s.Clusters[cluster.Name] = seen
	}
	if err := s.plan.Validate(); err != nil {
		s.t.Fatal(err)
	}
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	return s
}

func sick(seen *Observation) { seen.Healthy = false }

// TestPresent: clusters that have the content already count against the bounds of their wave. Later
// waves wait while any of them is unhealthy. These clusters never change, and users can skip them.
func TestPresent(t *testing.T) {
	of := func() *story { return tell(t, 1, 3).joins("c00", "c01", "c02") }
	of().after(0, nil).after(time.Minute, nil).is(Completed, Present, Present, Present, Succeeded)
	if groups := of().plan.Groups(); len(groups) != 1 || !slices.Equal(groups[0].Clusters, []string{"c03"}) {
		t.Errorf("clusters that do not change are reviewed: %+v", groups)
	}

	// Two clusters of the wave can be unavailable. A third would exceed the budget.
	both := func(cluster string, seen *Observation) { seen.Healthy = cluster != "c01" && cluster != "c02" }
	of().after(0, only("c01", sick)).is(InProgress, Present, Present, Present, Updating)
	s := of().after(0, both).is(PhaseHalted, Present, Present, Present, Pending).waits(WaitUnhealthy, "c01", "c02")
	skipped, err := s.plan.Skip(s.progress, s.s, s.plan.Troubles(s.progress, s.s), []string{"c01"})
	if err != nil {
		t.Fatal(err)
	}
	s.after(time.Minute, func(_ string, seen *Observation) { seen.Healthy = true }).is(InProgress, Present, Present, Present, Updating)
	s.progress = skipped
	s.after(time.Minute, both).is(InProgress, Present, Skipped, Present, Updating)

	// Other content, another cluster, or no observation makes a cluster unavailable.
	for what, change := range map[string]func(*Observation){
		"content": func(o *Observation) { o.Content = "other" }, "uid": func(o *Observation) { o.UID = "another" }, "no uid": func(o *Observation) { o.UID = "" },
	} {
		s := of()
		s.plan.Waves[1].Bounds.MaxUnavailable = 1
		s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
		s.after(0, only("c02", change))
		if s.progress.at("c03").State != Pending {
			t.Errorf("another %s: the cluster beside it begins", what)
		}
	}

	// MaxUnreachable bounds unreachable clusters.
	of().after(0, only("c01", away)).is(InProgress, Present, Present, Present, Updating)
	of().after(0, func(cluster string, seen *Observation) { seen.Unreachable = cluster == "c01" || cluster == "c02" }).
		is(PhaseHalted, Present, Present, Present, Pending).waits(WaitUnreachable, "c01", "c02")

	// The earlier wave is not done while one of its clusters is unhealthy.
	of().after(0, only("c00", sick)).is(PhaseHalted, Present, Present, Present, Pending).waits(WaitEarlier, "c00")
	// A later wave does not delay the rollout, nor does a wave without changing clusters.
	tell(t, 1, 2).joins("c01", "c02").after(0, both).is(InProgress, Updating, Present, Present)

	// A cluster that leaves no longer counts.
	s = of()
	s.s.Members["c01"] = false
	s.after(0, both).is(InProgress, Present, Leaving, Present, Updating)

	// A wave with a separate approval needs none if nothing changes before it.
	s = tell(t, 1, 1).joins("c00")
	s.plan.Waves[1].AsksAgain = true
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.after(0, nil).is(InProgress, Present, Updating)
}

// TestWindow: clusters of a wave begin in its window only. Changing clusters continue, and the wait
// has the time when the window opens.
func TestWindow(t *testing.T) {
	s := tell(t, 1, 3) // at 8:00 UTC
	s.plan.Waves[1].Window = &Window{Schedule: "0 10 * * *", TimeZone: "Europe/Berlin", Duration: time.Hour}
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.after(0, nil).is(InProgress, Updating, Pending, Pending, Pending)
	s.after(time.Minute, nil).after(10*time.Minute, nil).is(Scheduled, Succeeded, Pending, Pending, Pending).waits(WaitWaveWindow)
	if opens := s.report.Waits[0].Opens; !opens.Equal(time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("it opens at %s", opens)
	}
	s.after(48*time.Minute, nil).is(Scheduled, Succeeded, Pending, Pending, Pending)
	s.after(time.Minute, nil).is(InProgress, Succeeded, Updating, Updating, Pending)
	hangs := only("c01", func(o *Observation) { o.Content, o.Healthy = "", false })
	s.after(time.Minute, hangs).is(InProgress, Succeeded, Updating, Succeeded, Updating)

	// Maintenance windows of administrators count in addition.
	s = tell(t, 0, 2)
	s.plan.Waves[1].Window = &Window{Schedule: "0 8 * * *", TimeZone: "UTC", Duration: time.Hour}
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.s.Closed, s.s.Opens = true, s.s.Now.Add(time.Hour)
	s.after(0, nil).is(Scheduled, Pending, Pending).waits(WaitWindow)
	if opens := s.report.Waits[0].Opens; !opens.Equal(s.s.Opens) {
		t.Errorf("it opens at %s", opens)
	}
	s.s.Closed = false
	s.after(time.Minute, nil).is(InProgress, Updating, Updating)

	s = tell(t, 0, 2)
	s.plan.Waves[1].Window, s.plan.Waves[1].Bounds.MaxUnavailable = &Window{Schedule: "0 8 * * *", TimeZone: "UTC", Duration: time.Hour}, 1
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	slow := only("c00", func(o *Observation) { o.Content, o.Healthy = "", false })
	s.after(0, slow).after(20*time.Minute, slow).is(InProgress, Updating, Pending)
	s.s.Now = s.s.Now.Add(39 * time.Minute)
	s.progress.Clusters["c00"] = At{State: Updating, Attempt: 1, Since: s.s.Now}
	s.after(time.Minute, slow).is(InProgress, Updating, Pending).waits(WaitWaveWindow) // 9:00
}

// TestManyUnhealthy: unhealthy clusters begin first. When more are unhealthy than the bound and none is
// changing, only a user can help.
func TestManyUnhealthy(t *testing.T) {
	s := tell(t, 0, 4)
	both := func(cluster string, seen *Observation) { seen.Healthy = cluster != "c02" && cluster != "c03" }
	s.after(0, both).is(InProgress, Pending, Pending, Updating, Updating).waits(WaitUnavailable, "c02", "c03")
	s = tell(t, 0, 4)
	s.plan.Waves[1].Bounds.MaxUnavailable = 1
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.after(0, both).is(PhaseHalted, Pending, Pending, Pending, Pending).waits(WaitUnhealthy, "c02", "c03")
	if len(s.report.Waits) != 1 {
		t.Errorf("it waits for something else too: %+v", s.report.Waits)
	}
	s.after(time.Minute, func(cluster string, seen *Observation) { seen.Healthy = cluster != "c03" }).is(InProgress, Pending, Pending, Pending, Updating)

	// A healthy cluster that soaks does not delay other clusters.
	s = tell(t, 0, 3)
	s.plan.Waves[1].Soak = time.Hour
	s.plan.Waves[1].Bounds.MaxUnavailable = 1
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.after(0, nil).after(time.Minute, nil).is(InProgress, Soaking, Updating, Pending)
	s.after(time.Minute, only("c01", func(o *Observation) { o.Failed, o.Healthy = true, false })).is(PhaseHalted, Soaking, Failed, Pending).waits(WaitUnhealthy, "c01")
}

// TestRefused: a cluster gets nothing if it is not the approved cluster, or would see another
// change.
func TestRefused(t *testing.T) {
	s := tell(t, 1, 1).after(0, only("c00", func(o *Observation) { o.UID = "another" }))
	s.is(PhaseHalted, Failed, Pending)
	if reason := s.progress.at("c00").Reason; reason != ReasonOtherCluster {
		t.Errorf("the reason is %s", reason)
	}
	s = tell(t, 1, 1).after(0, only("c00", func(o *Observation) { o.Change = Change("old", "newer") }))
	s.is(PhaseHalted, Failed, Pending)
	if reason := s.progress.at("c00").Reason; reason != ReasonChangedSinceReview {
		t.Errorf("the reason is %s", reason)
	}
	tell(t, 1, 1).after(0, only("c00", func(o *Observation) { o.Change = "" })).is(InProgress, Pending, Pending).waits(WaitUnobserved, "c00")
}

// TestWaveApproval: a wave with a separate approval waits for a user who has seen the results of
// the earlier waves.
func TestWaveApproval(t *testing.T) {
	s := tell(t, 1, 1)
	s.plan.Waves[1].AsksAgain = true
	s.after(0, nil).is(ReviewRequired, Pending, Pending).waits(WaitApproval) // the approval names another plan
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	early := s.plan.WaveDigest(s.progress, "rest")
	s.after(0, nil).after(time.Minute, nil)
	if _, err := s.plan.ApproveWave(s.progress, "rest", s.plan.WaveDigest(s.progress, "rest")); err == nil || !strings.Contains(err.Error(), "canary is not done") {
		t.Errorf("too early: %v", err)
	}
	s.after(10*time.Minute, nil).is(ReviewRequired, Succeeded, Pending).waits(WaitWaveApproval)
	if _, err := s.plan.ApproveWave(s.progress, "rest", early); err == nil || !strings.Contains(err.Error(), "read it again") {
		t.Errorf("of something before: %v", err)
	}
	next, err := s.plan.ApproveWave(s.progress, "rest", s.plan.WaveDigest(s.progress, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	s.progress = next
	s.after(time.Minute, nil).is(InProgress, Succeeded, Updating)
}

// TestEnd: in an ended rollout no cluster begins and users cannot act. Changing clusters finish.
func TestEnd(t *testing.T) {
	s := tell(t, 2, 0).after(0, nil)
	s.progress.Ended = true
	if _, err := s.plan.Halt(s.progress); err == nil {
		t.Error("a rollout that ended is halted")
	}
	s.after(time.Minute, nil).after(10*time.Minute, nil).is(Superseded, Succeeded, Pending)
}

// TestTable: each state can be reached, and left unless it is final. One event moves one state to
// one state.
func TestTable(t *testing.T) {
	type pair struct {
		State
		Event
	}
	seen, reached := map[pair]bool{}, map[State]bool{Pending: true, Present: true}
	for _, row := range Table() {
		reached[row.To] = true
		for _, from := range row.From {
			if seen[pair{from, row.On}] {
				t.Errorf("%s on %s has two rows", from, row.On)
			}
			seen[pair{from, row.On}] = true
		}
	}
	for _, state := range States() {
		if !reached[state] {
			t.Errorf("nothing leads to %s", state)
		}
		leaves := slices.ContainsFunc(Table(), func(row Transition) bool { return slices.Contains(row.From, state) && row.To != state })
		if last := state == Skipped; leaves == last {
			t.Errorf("%s: a way out is %v", state, leaves)
		}
	}
	if _, err := Next(Skipped, EventBegin); err == nil {
		t.Error("a cluster that people skipped begins")
	}
}

// TestAssign: every cluster is assigned once: to the first wave that selects it, to no wave, or as
// a duplicate.
func TestAssign(t *testing.T) {
	ring := func(text string) labels.Selector {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	of := func(name, uid, value string) Candidate {
		return Candidate{Name: name, UID: uid, Labels: map[string]string{"ring": value}}
	}
	got := Assign([]labels.Selector{ring("ring=0"), ring("ring in (0,1)")}, []Candidate{
		of("e", "5", "2"), of("d", "1", "0"), of("a", "1", "1"), of("b", "", "0"), of("c", "", "0"),
	})
	text := fmt.Sprint(got.Waves, got.Unassigned, got.Unknown, got.Same)
	if want := "[[] [{a 1 map[ring:1]}]] [{e 5 map[ring:2]}] [{b  map[ring:0]} {c  map[ring:0]}] [{d 1 map[ring:0]}]"; text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

// TestGroups: the largest group is first. Clusters with other content form another group.
func TestGroups(t *testing.T) {
	plan := tell(t, 1, 3).plan
	plan.Clusters[1].Before = ""
	digest := plan.Digest()
	groups := plan.Groups()
	if len(groups) != 2 || !slices.Equal(groups[0].Clusters, []string{"c00", "c02", "c03"}) || !slices.Equal(groups[1].Clusters, []string{"c01"}) {
		t.Errorf("%+v", groups)
	}
	for what, change := range map[string]func(){
		"cluster": func() { plan.Clusters[0].UID = "x" }, "content": func() { plan.Clusters[0].After = "x" }, "wave": func() { plan.Clusters[0].Wave = "rest" },
		"bound": func() { plan.Waves[0].Bounds.MaxFailures++ }, "deadline": func() { plan.Deadline++ },
		"window": func() { plan.Waves[0].Window = &Window{Schedule: "@daily", TimeZone: "UTC", Duration: time.Hour} },
	} {
		if change(); plan.Digest() == digest {
			t.Errorf("another %s has the same digest", what)
		}
		digest = plan.Digest()
	}
}

// TestFound holds counter-examples from a code review.
func TestFound(t *testing.T) {
	s := tell(t, 1, 1).after(0, nil).after(time.Minute, only("c00", func(o *Observation) { o.Failed = true }))
	s.s.Members["c00"] = false
	s.after(0, nil).is(PhaseHalted, Failed, Pending).waits(WaitFailures, "c00")

	s = tell(t, 2, 1).after(0, only("c01", away)).after(time.Minute, only("c01", away)).after(10*time.Minute, only("c01", away))
	s.is(InProgress, Succeeded, Deferred, Updating)
	delete(s.s.Clusters, "c01")
	s.after(time.Minute, nil).is(Completed, Succeeded, Deferred, Succeeded)

	s = tell(t, 1, 1).after(0, nil).after(time.Minute, nil)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Attempt, o.Content = 7, "old" })).is(PhaseHalted, RolledBack, Pending)

	s = tell(t, 1, 1).after(0, nil).after(time.Minute, nil)
	looked := s.s.Now
	s.after(9*time.Minute, only("c00", func(o *Observation) { o.At = looked })).after(time.Minute, nil).is(PhaseSoaking, Soaking, Pending)
	s.after(10*time.Minute, nil).is(InProgress, Succeeded, Updating)

	s = tell(t, 0, 2)
	s.plan.Waves[1].Bounds.MaxUnavailable = 1
	s.progress, _ = s.plan.Approve(s.progress, s.plan.Digest())
	s.after(0, nil).after(time.Minute, only("c00", func(o *Observation) { o.UID = "" }))
	s.after(time.Minute, only("c00", func(o *Observation) { o.UID = "" })).is(PhaseHalted, Succeeded, Pending).waits(WaitUnhealthy, "c00")

	s = tell(t, 1, 1)
	s.after(0, nil).is(InProgress, Updating, Pending)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Attempt, o.Change = 0, "another" })).is(PhaseHalted, Failed, Pending)

	s = tell(t, 1, 1).after(0, nil).after(time.Minute, nil).after(10*time.Minute, nil)
	s.after(time.Minute, only("c00", func(o *Observation) { o.Failed = true })).is(PhaseHalted, Failed, Succeeded)
}

// TestValidate: a plan that cannot keep the rule is invalid.
func TestValidate(t *testing.T) {
	if err := tell(t, 1, 2).plan.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(p *Plan){
		"wave \"canary\": names":        func(p *Plan) { p.Waves[1].Name = "canary" },
		"maxUnavailable must be":        func(p *Plan) { p.Waves[1].Bounds.MaxUnavailable = 0 },
		"cluster \"c00\": names":        func(p *Plan) { p.Clusters[1].Name = "c00" },
		"its uid":                       func(p *Plan) { p.Clusters[1].UID = "" },
		"new content must be known":     func(p *Plan) { p.Clusters[1].After = "" },
		"clusters c00 and c01 are one":  func(p *Plan) { p.Clusters[1].UID = p.Clusters[0].UID },
		"in wave \"x\", which does not": func(p *Plan) { p.Clusters[1].Wave = "x" },
		"wave rest: schedule \"x\"":     func(p *Plan) { p.Waves[1].Window = &Window{Schedule: "x", TimeZone: "UTC", Duration: 1} },
		"c00: it has the content":       func(p *Plan) { p.Clusters[0].Present = true },
		"deadline must be above 0":      func(p *Plan) { p.Deadline = 0 },
	} {
		plan := tell(t, 1, 2).plan
		change(plan)
		if err := plan.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, tc := range []struct {
		value    int
		percent  bool
		clusters int
		want     int
	}{{10, true, 5, 1}, {10, true, 100, 10}, {10, true, 109, 10}, {100, true, 7, 7}, {0, true, 7, -1}, {101, true, 7, -1}, {0, false, 7, -1}, {3, false, 7, 3}} {
		got, err := Number(tc.value, tc.percent, tc.clusters, 1)
		if err != nil {
			got = -1
		}
		if got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
