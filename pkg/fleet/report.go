package fleet

import "time"

// Phase is the phase of a rollout.
type Phase string

// Phases of rollouts.
const (
	ReviewRequired Phase = "ReviewRequired"
	Scheduled      Phase = "Scheduled"
	InProgress     Phase = "InProgress"
	PhaseSoaking   Phase = "Soaking"
	PhaseHalted    Phase = "Halted"
	Completed      Phase = "Completed"
	Superseded     Phase = "Superseded"
)

// WaitReason is the reason why a rollout waits.
type WaitReason string

// Reasons to wait. The first group halts the rollout.
const (
	WaitHalted      WaitReason = "Halted"
	WaitFrozen      WaitReason = "Frozen"
	WaitFailures    WaitReason = "TooManyFailures"
	WaitUnreachable WaitReason = "TooManyUnreachable"
	WaitLeaving     WaitReason = "TooManyLeaving"
	WaitNoSuccess   WaitReason = "NoSuccess"
	WaitUnhealthy   WaitReason = "TooManyUnhealthy"
	WaitEarlier     WaitReason = "EarlierWaveUnhealthy"

	WaitApproval     WaitReason = "ApprovalRequired"
	WaitWaveApproval WaitReason = "WaveApprovalRequired"
	WaitWindow       WaitReason = "WindowClosed"
	WaitWaveWindow   WaitReason = "WaveWindowClosed"
	WaitUnobserved   WaitReason = "Unobserved"
	WaitUnavailable  WaitReason = "MaxUnavailable"
	WaitRoom         WaitReason = "TooManyChanging"
	WaitWave         WaitReason = "WaveInProgress"
	WaitSoak         WaitReason = "Soaking"
)

// Wait names the clusters that a rollout waits for.
type Wait struct {
	Reason WaitReason
	// Wave is the waiting wave; empty for the whole rollout.
	Wave string
	// Clusters lists the names of the clusters that the rollout waits for.
	Clusters []string
	// Opens is the time when the awaited window opens; zero for another reason, or while unknown.
	Opens time.Time
}

// Report is the state of a rollout after a step.
type Report struct {
	Phase Phase
	// Counts holds the number of clusters in each state. Its sum is the number of clusters of the
	// plan.
	Counts map[State]int
	// Waves holds the counts of each wave.
	Waves map[string]map[State]int
	Waits []Wait
}

func (s *step) report() Report {
	r := Report{Phase: s.phase(), Counts: map[State]int{}, Waves: map[string]map[State]int{}, Waits: s.waits}
	for _, wave := range s.plan.Waves {
		r.Waves[wave.Name] = map[State]int{}
		for _, cluster := range s.plan.of(wave.Name) {
			state := s.progress.at(cluster.Name).State
			r.Counts[state]++
			r.Waves[wave.Name][state]++
		}
	}
	return r
}

func (s *step) phase() Phase {
	changing, soaking := false, false
	for _, cluster := range s.plan.Clusters {
		switch s.progress.at(cluster.Name).State {
		case Updating, Unknown:
			changing = true
		case Soaking:
			soaking = true
		}
	}
	reasons := map[WaitReason]bool{}
	for _, wait := range s.waits {
		reasons[wait.Reason] = true
	}
	switch {
	case s.progress.Ended:
		return Superseded
	case reasons[WaitApproval]:
		return ReviewRequired
	case reasons[WaitHalted], reasons[WaitFrozen], reasons[WaitFailures], reasons[WaitUnreachable], reasons[WaitLeaving], reasons[WaitNoSuccess], reasons[WaitUnhealthy], reasons[WaitEarlier]:
		return PhaseHalted
	case s.progress.Completed:
		return Completed
	case changing:
		return InProgress
	case soaking:
		return PhaseSoaking
	case reasons[WaitWaveApproval]:
		return ReviewRequired
	case reasons[WaitWindow], reasons[WaitWaveWindow]:
		return Scheduled
	}
	return InProgress
}
