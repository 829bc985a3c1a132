// Package extensionrollout converts a ClusterExtensionRollout to the plan and the progress that
// package fleet reads, and writes the progress back. It uses no client and no clock.
package extensionrollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/fleet"
)

// Plan returns the part of a rollout that users approve.
func Plan(spec *v1alpha1.ClusterExtensionRolloutSpec) *fleet.Plan {
	plan := &fleet.Plan{Deadline: time.Duration(spec.DeadlineSeconds) * time.Second}
	for _, wave := range spec.Waves {
		one := fleet.Wave{
			Name: wave.Name, Soak: time.Duration(wave.SoakSeconds) * time.Second, AsksAgain: wave.ApprovalRequired,
			Bounds: fleet.Bounds{MaxUnavailable: int(wave.MaxUnavailable), MaxFailures: int(wave.MaxFailures), MaxUnreachable: int(wave.MaxUnreachable)},
		}
		if of := wave.Window; of != nil {
			one.Window = &fleet.Window{Schedule: of.Schedule, TimeZone: of.TimeZone, Duration: of.Duration.Duration}
		}
		plan.Waves = append(plan.Waves, one)
	}
	for _, cluster := range spec.Clusters {
		plan.Clusters = append(plan.Clusters, fleet.Cluster(cluster))
	}
	return plan
}

// Progress returns the progress of a rollout.
func Progress(status *v1alpha1.ClusterExtensionRolloutStatus) fleet.Progress {
	progress := fleet.Progress{Halted: status.HaltedBy != "", Ended: status.Ended, Completed: status.Completed, ApprovedWaves: map[string]string{}, Clusters: map[string]fleet.At{}}
	for _, approval := range status.Approvals {
		if approval.Wave == "" {
			progress.Approved = approval.Digest
		} else {
			progress.ApprovedWaves[approval.Wave] = approval.Digest
		}
	}
	for _, cluster := range status.Clusters {
		at := fleet.At{State: fleet.State(cluster.State), Attempt: cluster.Attempt, Since: cluster.Since.Time, Reason: fleet.Reason(cluster.Reason)}
		if cluster.Healthy != nil {
			at.Healthy = cluster.Healthy.Time
		}
		if cluster.Seen != nil {
			at.Seen = cluster.Seen.Time
		}
		progress.Clusters[cluster.Name] = at
	}
	return progress
}

// Record writes a progress into a status that already has the same approvals. By is the user who
// moved clusters; empty for Penstock.
func Record(status *v1alpha1.ClusterExtensionRolloutStatus, progress fleet.Progress, by string) {
	was := map[string]v1alpha1.RolloutClusterStatus{}
	for _, cluster := range status.Clusters {
		was[cluster.Name] = cluster
	}
	status.Completed, status.Clusters = progress.Completed, nil
	for name, at := range progress.Clusters {
		one := v1alpha1.RolloutClusterStatus{Name: name, State: string(at.State), Attempt: at.Attempt, Since: metav1.NewMicroTime(at.Since), Reason: string(at.Reason), By: was[name].By}
		if by != "" && was[name].State != one.State {
			one.By = by
		}
		if !at.Healthy.IsZero() {
			healthy := metav1.NewMicroTime(at.Healthy)
			one.Healthy = &healthy
		}
		if !at.Seen.IsZero() {
			seen := metav1.NewMicroTime(at.Seen)
			one.Seen = &seen
		}
		status.Clusters = append(status.Clusters, one)
	}
	slices.SortFunc(status.Clusters, func(a, b v1alpha1.RolloutClusterStatus) int { return strings.Compare(a.Name, b.Name) })
}

// Situation returns the time and the members of a rollout, as far as the status records them.
// Approvals and skips are checked against the result.
func Situation(spec *v1alpha1.ClusterExtensionRolloutSpec, status *v1alpha1.ClusterExtensionRolloutStatus, now time.Time) fleet.Situation {
	s := fleet.Situation{Now: now, MembersKnown: true, Members: map[string]bool{}}
	for _, cluster := range spec.Clusters {
		s.Members[cluster.Name] = true
	}
	for _, name := range status.Leaving {
		s.Members[name] = false
	}
	return s
}

const maxNamed = 10

// Say writes the rollout's phase, its waits and the digest to approve into a status.
func Say(name string, plan *fleet.Plan, status *v1alpha1.ClusterExtensionRolloutStatus, progress fleet.Progress, report fleet.Report, situation fleet.Situation) {
	status.Phase, status.Waits, status.Leaving, status.Digest, status.Wave = string(report.Phase), nil, nil, "", ""
	for _, wait := range report.Waits {
		one := v1alpha1.RolloutWait{Reason: string(wait.Reason), Wave: wait.Wave, Clusters: wait.Clusters[:min(len(wait.Clusters), maxNamed)], Count: int32(len(wait.Clusters))}
		if !wait.Opens.IsZero() {
			opens := metav1.NewTime(wait.Opens.UTC())
			one.OpensAt = &opens
		}
		status.Waits = append(status.Waits, one)
		switch wait.Reason {
		case fleet.WaitApproval:
			status.Digest = plan.Digest()
		case fleet.WaitWaveApproval:
			status.Digest, status.Wave = plan.WaveDigest(progress, wait.Wave), wait.Wave
		case fleet.WaitLeaving:
			status.Leaving = wait.Clusters
		}
	}
	status.Troubles = plan.Troubles(progress, situation)
	status.Message = message(name, report)
	SetConditions(&status.Conditions, map[string]bool{
		"Ready":       report.Phase == fleet.Completed,
		"Progressing": report.Phase == fleet.InProgress || report.Phase == fleet.PhaseSoaking || report.Phase == fleet.Scheduled,
		"Stalled":     report.Phase == fleet.PhaseHalted,
	}, metav1.Condition{Reason: status.Phase, Message: status.Message, LastTransitionTime: metav1.NewTime(situation.Now)})
}

// SetConditions sets the conditions of the map to true or false. Reason, message and time come from
// of.
func SetConditions(conditions *[]metav1.Condition, are map[string]bool, of metav1.Condition) {
	for _, kind := range slices.Sorted(maps.Keys(are)) {
		of.Type, of.Status = kind, metav1.ConditionFalse
		if are[kind] {
			of.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, of)
	}
}

// words returns a text for each reason to wait. The commands in it contain the name of the rollout.
func words() map[fleet.WaitReason]string {
	return map[fleet.WaitReason]string{
		fleet.WaitHalted:       "a user halted the rollout: kubectl penstock fleet resume %s",
		fleet.WaitFrozen:       "the set is paused or was changed, or the cluster is frozen",
		fleet.WaitFailures:     "more clusters failed than maxFailures allows: kubectl penstock fleet retry %s CLUSTER, or kubectl penstock fleet skip %[1]s CLUSTER",
		fleet.WaitUnreachable:  "more clusters are unreachable than maxUnreachable allows: repair their Secrets or the network, or kubectl penstock fleet skip %s CLUSTER",
		fleet.WaitLeaving:      "the set no longer selects these clusters: kubectl penstock fleet resume %s lets them leave",
		fleet.WaitNoSuccess:    "no cluster of the wave succeeded: kubectl penstock fleet retry %s CLUSTER, or kubectl penstock fleet skip %[1]s CLUSTER",
		fleet.WaitUnhealthy:    "clusters are unhealthy, and no other cluster begins beside them: repair them, or kubectl penstock fleet skip %s CLUSTER, or raise maxUnavailable in the set",
		fleet.WaitEarlier:      "clusters are unhealthy, and later waves do not begin: repair them, or kubectl penstock fleet skip %s CLUSTER",
		fleet.WaitApproval:     "the change waits for an approval: kubectl penstock fleet diff %s, then kubectl penstock fleet approve %[1]s",
		fleet.WaitWaveApproval: "the wave waits for an approval: kubectl penstock fleet status %s, then kubectl penstock fleet approve %[1]s",
		fleet.WaitWindow:       "the maintenance window is closed",
		fleet.WaitWaveWindow:   "its window is closed",
		fleet.WaitUnobserved:   "it is not known yet whether the clusters would see the approved change",
		fleet.WaitUnavailable:  "maxUnavailable clusters are changing or unhealthy",
		fleet.WaitRoom:         "too many clusters of all sets are changing",
		fleet.WaitWave:         "clusters are changing",
		fleet.WaitSoak:         "clusters soak",
	}
}

// message names the users or clusters for which a rollout waits.
func message(name string, report fleet.Report) string {
	var lines []string
	for _, wait := range report.Waits {
		text := words()[wait.Reason]
		if strings.Contains(text, "%") {
			text = fmt.Sprintf(text, name)
		}
		if wait.Wave != "" {
			text = "wave " + wait.Wave + ": " + text
		}
		if !wait.Opens.IsZero() {
			text += ", and opens at " + wait.Opens.UTC().Format(time.RFC3339)
		}
		if len(wait.Clusters) > 0 {
			named := strings.Join(wait.Clusters[:min(len(wait.Clusters), maxNamed)], ", ")
			if more := len(wait.Clusters) - maxNamed; more > 0 {
				named += fmt.Sprintf(" and %d more", more)
			}
			text += " (" + named + ")"
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "; ")
}
