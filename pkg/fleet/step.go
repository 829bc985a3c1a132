package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// Up to leavingTogether clusters, and up to leavingPercent of all clusters, may leave within
	// leavingTime without the decision of a user.
	leavingTogether = 1
	leavingPercent  = 10
	leavingTime     = 10 * time.Minute
	// longestGap bounds the time between two observations of a soak time: the health in between is
	// unknown.
	longestGap = 5 * time.Minute
	// seenEvery rounds the stored time of the last observation, so that not every observation is a
	// write.
	seenEvery = time.Minute
)

type step struct {
	plan *Plan
	Situation
	progress Progress
	waits    []Wait
}

// Step computes the next progress:
//
//  1. It moves each cluster by its observation.
//  2. It removes the clusters that the set no longer selects, unless too many would leave together.
//  3. It lets clusters begin in their turn, wave by wave, unless the rollout is halted.
//  4. It completes the rollout when every wave is done.
//
// The report has the state of the rollout, and the clusters that it waits for.
func (p *Plan) Step(progress Progress, situation Situation) (Progress, Report) {
	s := &step{plan: p, Situation: situation, progress: progress.clone()}
	for _, cluster := range p.Clusters {
		if _, known := s.progress.Clusters[cluster.Name]; cluster.Present && !known {
			s.progress.Clusters[cluster.Name] = At{State: Present, Since: s.Now}
		}
		s.observe(cluster)
	}
	s.leave()
	if !s.progress.Ended {
		s.begin()
	}
	return s.progress, s.report()
}

func (p *Plan) soak(cluster Cluster) time.Duration {
	for _, wave := range p.Waves {
		if wave.Name == cluster.Wave {
			return wave.Soak
		}
	}
	return 0
}

// observe moves a cluster by its observation and its deadline.
func (s *step) observe(cluster Cluster) {
	before := s.progress.at(cluster.Name)
	if before.State == Present {
		return // a present cluster does not change
	}
	if s.progress.Completed && (before.State == Succeeded || before.State == RolledBack || before.State == Failed) {
		return // the rollout is over for this cluster
	}
	if seen, observed := s.Clusters[cluster.Name]; observed {
		s.see(cluster, before, seen)
	}
	at := s.progress.at(cluster.Name)
	if (waits(at.State) || at.State == Soaking && at.Healthy.IsZero()) && !s.Now.Before(at.Since.Add(s.plan.Deadline)) {
		s.progress.fail(cluster.Name, EventFail, ReasonDeadlineExceeded, s.Now)
	}
}

func (s *step) see(cluster Cluster, at At, seen Observation) {
	name := cluster.Name
	switch {
	case seen.Unreachable:
		s.progress.move(name, EventLost, s.Now)
		if at.State == Updating { // the deadline continues
			lost := s.progress.Clusters[name]
			lost.Since = at.Since
			s.progress.Clusters[name] = lost
		}
		return
	case seen.UID != "" && seen.UID != cluster.UID:
		s.progress.fail(name, EventRefuse, ReasonOtherCluster, s.Now)
		return
	case at.State == Pending || at.State == Deferred || waits(at.State) && seen.Attempt != at.Attempt:
		if seen.Change != "" && seen.Change != cluster.Change() {
			s.progress.fail(name, EventRefuse, ReasonChangedSinceReview, s.Now)
		}
		return // nothing was written yet
	case seen.At.Before(at.Since):
		return // the observation is older than the state
	case seen.Refused && seen.Attempt == at.Attempt:
		s.progress.fail(name, EventRefuse, ReasonChangedSinceReview, s.Now)
		return
	case seen.Failed && seen.Attempt == at.Attempt:
		s.progress.fail(name, EventFail, ReasonFailed, s.Now)
		return
	case seen.Content != "" && seen.Content != cluster.After:
		s.progress.fail(name, EventRolledBack, ReasonRolledBack, s.Now)
		return
	}
	healthy := seen.Healthy && seen.Content == cluster.After
	switch {
	case !healthy && (at.State == Succeeded || at.State == Soaking && !at.Healthy.IsZero()):
		s.progress.move(name, EventUnhealthy, s.Now)
		at = s.progress.Clusters[name]
		at.Healthy, at.Seen = time.Time{}, time.Time{}
		s.progress.Clusters[name] = at
	case healthy && (at.State == Soaking || s.progress.move(name, EventHealthy, s.Now)):
		at = s.progress.Clusters[name]
		if at.Healthy.IsZero() || seen.At.Sub(at.Seen) > longestGap {
			at.Healthy = seen.At
		}
		at.Seen = seen.At.Truncate(seenEvery)
		s.progress.Clusters[name] = at
	}
	// Only an observation after the soak time proves that the cluster was healthy until its end.
	at = s.progress.at(name)
	if healthy && at.State == Soaking && !seen.At.Before(at.Healthy.Add(s.plan.soak(cluster))) {
		s.progress.move(name, EventSoaked, s.Now)
	}
}

// waits reports whether a state waits for the end of a cluster's rollout.
func waits(state State) bool { return state == Updating || state == Unknown }

// leave removes the clusters that the set no longer selects. If many clusters would leave together,
// the cause is more probably a mistake, so a user has to accept it.
func (s *step) leave() {
	leaving := s.leaving()
	if s.tooMany(leaving) {
		s.wait(WaitLeaving, "", leaving...)
		return
	}
	for _, name := range leaving {
		s.progress.move(name, EventLeave, s.Now)
	}
}

func (s *step) leaving() []string {
	if !s.MembersKnown {
		return nil
	}
	var leaving []string
	for _, name := range s.all() {
		if !s.Members[name] && handles(s.progress.at(name).State, EventLeave) {
			leaving = append(leaving, name)
		}
	}
	return leaving
}

// all returns the clusters of the plan, then the other clusters that have a child of the set.
func (s *step) all() []string {
	planned := map[string]bool{}
	var names []string
	for _, cluster := range s.plan.Clusters {
		planned[cluster.Name] = true
		names = append(names, cluster.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Members)) {
		if !planned[name] {
			names = append(names, name)
		}
	}
	return names
}

// tooMany reports whether more clusters leave together than allowed without a user.
func (s *step) tooMany(leaving []string) bool {
	together, all := len(leaving), s.all()
	for _, name := range all {
		if at := s.progress.at(name); at.State == Leaving && s.Now.Sub(at.Since) < leavingTime {
			together++
		}
	}
	return len(leaving) > 0 && together > leavingTogether && together*100 > leavingPercent*len(all)
}

func (s *step) begin() {
	if s.progress.Approved != s.plan.Digest() {
		s.wait(WaitApproval, "")
		return
	}
	if s.halted() {
		return
	}
	for _, wave := range s.plan.Waves {
		if !s.turn(wave) || !s.done(wave) {
			return
		}
	}
	s.progress.Completed = true
}

// halted reports whether no cluster of any wave may begin.
func (s *step) halted() bool {
	if over := s.progress.Completed && !s.follows(); !over {
		if s.progress.Halted {
			s.wait(WaitHalted, "")
		}
		if s.Frozen {
			s.wait(WaitFrozen, "")
		}
	}
	for _, wave := range s.plan.Waves {
		if failed := s.in(wave, Failed, RolledBack); len(failed) > wave.Bounds.MaxFailures {
			s.wait(WaitFailures, wave.Name, failed...)
		}
	}
	return len(s.waits) > 0
}

func (s *step) follows() bool {
	return slices.ContainsFunc(s.plan.Waves, func(wave Wave) bool { return len(s.in(wave, Pending, Deferred)) > 0 })
}

// turn lets clusters of a wave begin if it is the turn of the wave. It returns false if no later
// wave may begin.
func (s *step) turn(wave Wave) bool {
	waiting := s.in(wave, Pending, Deferred)
	if len(waiting) > 0 && !s.approved(wave) {
		s.wait(WaitWaveApproval, wave.Name)
		return false
	}
	for _, name := range s.in(wave, Pending) {
		if s.Clusters[name].Unreachable {
			s.progress.move(name, EventDefer, s.Now)
		}
	}
	if away := s.away(wave); len(away) > wave.Bounds.MaxUnreachable {
		s.wait(WaitUnreachable, wave.Name, away...)
		return false
	}
	if reason, opens := s.closed(wave); reason != "" {
		if len(waiting) > 0 {
			s.waits = append(s.waits, Wait{Reason: reason, Wave: wave.Name, Opens: opens})
		}
		return true
	}
	s.spend(wave)
	return true
}

// closed returns the closed window that prevents the clusters of a wave from beginning, and the
// time when it opens. The reason is empty if they may begin.
func (s *step) closed(wave Wave) (WaitReason, time.Time) {
	if s.Closed {
		return WaitWindow, s.Opens
	}
	if wave.Window == nil {
		return "", time.Time{}
	}
	span, open, err := wave.Window.at(s.Now)
	if err != nil || !open {
		return WaitWaveWindow, span.Opens
	}
	return "", time.Time{}
}

// approved reports whether a wave needs no further approval. The approval of the plan also approves
// the first wave that has clusters.
func (s *step) approved(wave Wave) bool {
	return !wave.AsksAgain || len(s.plan.before(wave.Name)) == 0 || s.progress.ApprovedWaves[wave.Name] == s.plan.WaveDigest(s.progress, wave.Name)
}

// spend lets clusters begin within the budget of a wave. Unhealthy clusters begin first, because
// the budget counts them already. Clusters of earlier waves that have the content already must be
// healthy.
func (s *step) spend(wave Wave) {
	counted := map[string]bool{}
	for _, cluster := range s.plan.of(wave.Name) {
		if s.unavailable(cluster) {
			counted[cluster.Name] = true
		}
	}
	var ready []Cluster
	var unseen []string
	for _, cluster := range s.plan.of(wave.Name) {
		state := s.progress.at(cluster.Name).State
		if state != Pending && state != Deferred {
			continue
		}
		seen, observed := s.Clusters[cluster.Name]
		switch {
		case observed && !seen.Unreachable && cluster.UID != "" && seen.UID == cluster.UID && seen.Change == cluster.Change():
			ready = append(ready, cluster)
		case !seen.Unreachable:
			unseen = append(unseen, cluster.Name)
		}
	}
	if len(unseen) > 0 {
		s.wait(WaitUnobserved, wave.Name, unseen...)
	}
	if len(ready) == 0 || s.unhealthyBefore(wave) {
		return
	}
	slices.SortStableFunc(ready, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(rank(counted[a.Name]), rank(counted[b.Name])), cmp.Compare(a.Name, b.Name))
	})
	for _, cluster := range ready {
		next := len(counted)
		if !counted[cluster.Name] {
			next++
		}
		switch {
		case next > wave.Bounds.MaxUnavailable:
			s.wait(s.unavailableReason(counted), wave.Name, keys(counted)...)
			return
		case s.Room <= 0:
			s.wait(WaitRoom, wave.Name)
			return
		}
		s.Room--
		counted[cluster.Name] = true
		s.progress.move(cluster.Name, EventBegin, s.Now)
		at := s.progress.Clusters[cluster.Name]
		at.Attempt++
		s.progress.Clusters[cluster.Name] = at
	}
}

// unhealthyBefore adds waits for Present clusters of earlier waves that are unhealthy. It reports
// whether there are any.
func (s *step) unhealthyBefore(wave Wave) bool {
	found := false
	for _, earlier := range s.plan.Waves {
		if earlier.Name == wave.Name {
			break
		}
		var unhealthy []string
		for _, cluster := range s.plan.of(earlier.Name) {
			if s.progress.at(cluster.Name).State == Present && s.unavailable(cluster) {
				unhealthy = append(unhealthy, cluster.Name)
			}
		}
		if len(unhealthy) > 0 {
			s.wait(WaitEarlier, earlier.Name, unhealthy...)
			found = true
		}
	}
	return found
}

// unavailableReason returns the reason why the budget is spent. Clusters that change or soak free
// the budget by themselves. Unhealthy clusters need a user to repair them.
func (s *step) unavailableReason(counted map[string]bool) WaitReason {
	for name := range counted {
		if state := s.progress.at(name).State; waits(state) || state == Soaking {
			return WaitUnavailable
		}
	}
	return WaitUnhealthy
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// unavailable reports whether a cluster counts against the budget of its wave, because it is
// changing, unhealthy or unknown.
func (s *step) unavailable(cluster Cluster) bool {
	state := s.progress.at(cluster.Name).State
	seen, observed := s.Clusters[cluster.Name]
	switch {
	case state == Updating, state == Unknown:
		return true
	case state == Skipped, state == Leaving:
		return false
	case !observed:
		return true
	case state == Present:
		return !seen.Unreachable && (seen.UID != cluster.UID || seen.Content != cluster.After || !seen.Healthy)
	case seen.Unreachable:
		return state != Pending && state != Deferred // MaxUnreachable bounds these clusters
	case seen.UID != "" && seen.UID != cluster.UID:
		return false // the cluster failed; MaxFailures bounds it
	case seen.UID == "":
		return true
	}
	return !seen.Healthy
}

// away returns the unreachable clusters of a wave, except the failed clusters. A deferred cluster
// is away until it is reached.
func (s *step) away(wave Wave) []string {
	var away []string
	for _, name := range s.in(wave, Present, Pending, Deferred, Updating, Unknown, Soaking, Succeeded) {
		seen, observed := s.Clusters[name]
		if seen.Unreachable || !observed && s.progress.at(name).State == Deferred {
			away = append(away, name)
		}
	}
	return away
}

// done reports whether later waves may begin.
func (s *step) done(wave Wave) bool {
	if changing := s.in(wave, Updating, Unknown); len(changing) > 0 {
		s.wait(WaitWave, wave.Name, changing...)
		return false
	}
	waiting := s.in(wave, Pending)
	for _, name := range s.in(wave, Deferred) {
		if seen, observed := s.Clusters[name]; observed && !seen.Unreachable {
			waiting = append(waiting, name) // its turn comes again
		}
	}
	if len(waiting) > 0 {
		return false // turn reports the awaited clusters
	}
	if soaking := s.in(wave, Soaking); len(soaking) > 0 {
		s.wait(WaitSoak, wave.Name, soaking...)
		return false
	}
	// A wave without a single success has proved nothing, so the bounds do not complete it. A
	// completed rollout stays completed if its clusters leave later.
	if missing := s.in(wave, Deferred, Failed, RolledBack, Leaving); len(missing) > 0 && len(s.in(wave, Succeeded)) == 0 && !s.progress.Completed {
		s.wait(WaitNoSuccess, wave.Name, missing...)
		return false
	}
	return true
}

// in returns the names of a wave's clusters that are in some states.
func (s *step) in(wave Wave, states ...State) []string {
	var names []string
	for _, cluster := range s.plan.of(wave.Name) {
		if slices.Contains(states, s.progress.at(cluster.Name).State) {
			names = append(names, cluster.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *step) wait(reason WaitReason, wave string, clusters ...string) {
	s.waits = append(s.waits, Wait{Reason: reason, Wave: wave, Clusters: clusters})
}

func keys(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
