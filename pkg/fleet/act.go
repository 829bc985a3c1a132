package fleet

import (
	"fmt"
	"slices"
	"strings"
)

// Troubles returns the digest of the clusters in trouble. A cluster is in trouble if it failed, was
// lost during its change, is deferred, or would leave. Users pass the digest to Resume, Retry and
// Skip, so that they decide about exactly the clusters that they were shown.
func (p *Plan) Troubles(progress Progress, situation Situation) string {
	s := &step{plan: p, Situation: situation, progress: progress.clone()}
	shown := []any{p.Digest()}
	for _, cluster := range p.Clusters {
		switch at := s.progress.at(cluster.Name); at.State {
		case Failed, RolledBack, Unknown, Deferred:
			shown = append(shown, []any{cluster.Name, at.State, at.Attempt, at.Reason})
		}
	}
	return digest("fleet-troubles", append(shown, s.leaving()))
}

// Approve approves the plan if reviewed is its digest.
func (p *Plan) Approve(progress Progress, reviewed string) (Progress, error) {
	if err := open(progress); err != nil {
		return progress, err
	}
	if err := match("the rollout", reviewed, p.Digest()); err != nil {
		return progress, err
	}
	next := progress.clone()
	next.Approved = p.Digest()
	return next, nil
}

// ApproveWave approves a wave that needs a separate approval, once every earlier wave is done.
func (p *Plan) ApproveWave(progress Progress, wave, reviewed string) (Progress, error) {
	if err := open(progress); err != nil {
		return progress, err
	}
	at := slices.IndexFunc(p.Waves, func(w Wave) bool { return w.Name == wave })
	if at < 0 {
		return progress, fmt.Errorf("there is no wave %q", wave)
	}
	if progress.Approved != p.Digest() {
		return progress, fmt.Errorf("wave %s cannot be approved before the rollout is", wave)
	}
	s := &step{plan: p, progress: progress.clone()}
	for _, earlier := range p.Waves[:at] {
		if !s.done(earlier) {
			return progress, fmt.Errorf("wave %s cannot be approved yet: wave %s is not done", wave, earlier.Name)
		}
	}
	if err := match("wave "+wave, reviewed, p.WaveDigest(progress, wave)); err != nil {
		return progress, err
	}
	s.progress.ApprovedWaves[wave] = reviewed
	return s.progress, nil
}

// Halt prevents further clusters from beginning until a user resumes the rollout.
func (p *Plan) Halt(progress Progress) (Progress, error) {
	if err := open(progress); err != nil {
		return progress, err
	}
	next := progress.clone()
	next.Halted = true
	return next, nil
}

// Resume ends the halt of a user, and removes the clusters that were shown as leaving.
func (p *Plan) Resume(progress Progress, situation Situation, shown string) (Progress, error) {
	if err := p.decide(progress, situation, shown); err != nil {
		return progress, err
	}
	s := &step{plan: p, Situation: situation, progress: progress.clone()}
	for _, name := range s.leaving() {
		s.progress.move(name, EventLeave, situation.Now)
	}
	s.progress.Halted = false
	return s.progress, nil
}

// Retry lets failed clusters begin again when their turn comes.
func (p *Plan) Retry(progress Progress, situation Situation, shown string, clusters []string) (Progress, error) {
	return p.moveAll(progress, situation, shown, EventRetry, clusters)
}

// Skip continues the rollout without clusters that failed or have not begun.
func (p *Plan) Skip(progress Progress, situation Situation, shown string, clusters []string) (Progress, error) {
	return p.moveAll(progress, situation, shown, EventSkip, clusters)
}

// moveAll moves all of the clusters or none of them.
func (p *Plan) moveAll(progress Progress, situation Situation, shown string, event Event, clusters []string) (Progress, error) {
	if err := p.decide(progress, situation, shown); err != nil {
		return progress, err
	}
	if len(clusters) == 0 {
		return progress, fmt.Errorf("no cluster is named")
	}
	next := progress.clone()
	for _, name := range clusters {
		if !slices.ContainsFunc(p.Clusters, func(c Cluster) bool { return c.Name == name }) {
			return progress, fmt.Errorf("cluster %q is not part of the rollout", name)
		}
		if state := next.at(name).State; !next.move(name, event, situation.Now) {
			return progress, fmt.Errorf("cluster %s is %s: only a cluster that is %s can be named", name, state, allowed(event))
		}
	}
	return next, nil
}

// decide returns an error if the troubles changed since the user saw them.
func (p *Plan) decide(progress Progress, situation Situation, shown string) error {
	if err := open(progress); err != nil {
		return err
	}
	return match("the list of troubles", shown, p.Troubles(progress, situation))
}

func open(progress Progress) error {
	if progress.Ended {
		return fmt.Errorf("the rollout has ended: another one took its place")
	}
	return nil
}

// match returns an error if the user reviewed another digest than the present one.
func match(what, reviewed, now string) error {
	if reviewed != now {
		return fmt.Errorf("%s has the digest %s, found %q: read it again", what, now, reviewed)
	}
	return nil
}

// allowed lists the states that the event can move, for an error message.
func allowed(event Event) string {
	var states []string
	for _, row := range Table() {
		if row.On == event {
			for _, state := range row.From {
				states = append(states, string(state))
			}
		}
	}
	return strings.Join(states, " or ")
}
