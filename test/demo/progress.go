package main

import (
	"fmt"
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// progress records the phases of a rollout that were reported.
type progress struct {
	began time.Time
	// written are the objects that the rollout changes. A phase without changed objects is not
	// reported.
	written  map[manifest.ID]bool
	reported map[string]bool
}

func newProgress(began time.Time, written map[manifest.ID]bool) *progress {
	return &progress{began: began, written: written, reported: map[string]bool{}}
}

// news returns a line for each phase that has become available since the last call, in order. It
// also returns what the next phase waits for.
func (p *progress) news(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) (lines []string, waiting string) {
	if revision.Status.ObservedGeneration != revision.Generation {
		return nil, ""
	}
	width := 0
	writes := map[string][]manifest.ID{}
	for _, phase := range revision.Spec.Phases {
		width = max(width, len(phase.Name))
		writes[phase.Name] = p.writes(phase)
	}
	for _, phase := range revision.Status.Phases {
		if phase.State != olmv1alpha1.PhaseStateAvailable || phase.Superseded > 0 {
			return lines, waitingFor(phase)
		}
		if p.reported[phase.Name] || len(writes[phase.Name]) == 0 {
			continue
		}
		p.reported[phase.Name] = true
		lines = append(lines, fmt.Sprintf("%-*s  %7s  %s", width, phase.Name, seconds(now.Sub(p.began)), kinds(writes[phase.Name])))
	}
	return lines, ""
}

func (p *progress) writes(phase olmv1alpha1.RevisionPhase) []manifest.ID {
	var ids []manifest.ID
	for _, object := range phase.Objects {
		if id := ref(object).ID; p.written[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// asBefore counts the phases that the rollout does not change.
func (p *progress) asBefore(revision *olmv1alpha1.ClusterExtensionRevision) int {
	n := 0
	for _, phase := range revision.Spec.Phases {
		if len(p.writes(phase)) == 0 {
			n++
		}
	}
	return n
}

// waitingFor returns the reason why a phase waits.
func waitingFor(phase olmv1alpha1.PhaseStatus) string {
	if len(phase.Failing) == 0 {
		return fmt.Sprintf("%s: %s", phase.Name, phase.State)
	}
	first := phase.Failing[0]
	return fmt.Sprintf("%s: %s %s: %s", phase.Name, first.Kind, first.Name, first.Message)
}
