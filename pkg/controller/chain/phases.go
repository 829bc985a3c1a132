package chain

import (
	"fmt"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/text"
)

// phaseStatuses reports the phases of an active revision, in the order of its spec. A phase without
// objects has no stages, and is as complete as the phase before it.
func phaseStatuses(revision *olmv1alpha1.ClusterExtensionRevision, layer *rollout.LayerReport) []olmv1alpha1.PhaseStatus {
	reports := make(map[string]rollout.PhaseReport, len(layer.Phases))
	for _, report := range layer.Phases {
		reports[report.Name] = report
	}
	most := maxFailures(layer.Phases)
	out := make([]olmv1alpha1.PhaseStatus, 0, len(revision.Spec.Phases))
	previous := olmv1alpha1.PhaseStateAvailable
	for _, phase := range revision.Spec.Phases {
		report, ok := reports[phase.Name]
		status := olmv1alpha1.PhaseStatus{Name: phase.Name, State: previous}
		if ok {
			status = phaseStatus(report, most)
		} else if previous != olmv1alpha1.PhaseStateAvailable {
			status.State = olmv1alpha1.PhaseStatePending
		}
		previous = status.State
		out = append(out, status)
	}
	return out
}

// failureBytes is the most space, in bytes, that one failing object takes in status besides its
// message: its identity and field names. The causes fit into the other half of status.
const failureBytes = 512

// maxFailures bounds the failing objects in the status of each phase, so that status stays within
// its limit for any messages.
func maxFailures(phases []rollout.PhaseReport) int {
	failing := 0
	for _, phase := range phases {
		if len(phase.Failures) > 0 {
			failing++
		}
	}
	const room = olmv1alpha1.MaxStatusBytes / 2 / (olmv1alpha1.MaxMessageLength + failureBytes)
	return max(1, min(olmv1alpha1.MaxReportedFailures, room/max(1, failing)))
}

func phaseStatus(report rollout.PhaseReport, most int) olmv1alpha1.PhaseStatus {
	status := olmv1alpha1.PhaseStatus{
		Name:       report.Name,
		State:      phaseState(report),
		Objects:    int32(report.Objects),
		Applied:    int32(report.Applied),
		Available:  int32(report.Available),
		Superseded: int32(report.Superseded),
	}
	for i, failure := range report.Failures {
		if i == most {
			status.FailingOmitted = int32(len(report.Failures) - i)
			break
		}
		status.Failing = append(status.Failing, olmv1alpha1.ObjectFailure{
			APIVersion: failure.APIVersion(),
			Kind:       failure.Kind,
			Namespace:  failure.Namespace,
			Name:       failure.Name,
			Reason:     failure.Reason,
			Message:    clip(failure.Message),
			Cause:      failureCause(failure.Cause),
		})
	}
	return status
}

// failureCause returns the part of a cause that status shows. It omits text of other writers.
func failureCause(found *cause.Cause) *olmv1alpha1.FailureCause {
	if found == nil {
		return nil
	}
	out := &olmv1alpha1.FailureCause{
		Reason: found.Reason, Object: objectName(found.Object),
		Container: found.Container, ExitCode: found.ExitCode, Restarts: found.Restarts,
	}
	if found.Related != nil {
		out.Related = new(objectName(*found.Related))
	}
	return out
}

func objectName(id manifest.ID) olmv1alpha1.ObjectName {
	return olmv1alpha1.ObjectName{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

func phaseState(report rollout.PhaseReport) olmv1alpha1.PhaseState {
	for _, failure := range report.Failures {
		if failing(failure) {
			return olmv1alpha1.PhaseStateFailing
		}
	}
	switch {
	case !report.Reached && len(report.Failures) == 0:
		return olmv1alpha1.PhaseStatePending
	case report.Objects > 0 && report.Superseded == report.Objects:
		return olmv1alpha1.PhaseStateSuperseded
	case report.Available+report.Superseded == report.Objects:
		return olmv1alpha1.PhaseStateAvailable
	default:
		return olmv1alpha1.PhaseStateProgressing
	}
}

// applied reports whether all objects of a layer match its manifests, even if probes fail.
func applied(layer *rollout.LayerReport) bool {
	for _, phase := range layer.Phases {
		if phase.Applied+phase.Superseded < phase.Objects {
			return false
		}
	}
	return true
}

// failing reports whether a user should look at an object: only a user can mend it, or it has been
// stuck for long.
func failing(failure rollout.Failure) bool { return failure.NeedsPerson || failure.Stuck }

// summary describes the obstacles of a layer in one line. It returns the first failure that needs a
// user, and the first stuck failure.
func summary(layer *rollout.LayerReport) (message string, person, stuck *rollout.Failure) {
	var first *rollout.Failure
	for i, phase := range layer.Phases {
		for j := range phase.Failures {
			failure := &phase.Failures[j]
			if first == nil {
				first = failure
				message = fmt.Sprintf("phase %s (%d of %d): %s", phase.Name, i+1, len(layer.Phases), describe(*failure))
				if more := len(phase.Failures) - 1; more > 0 {
					message += fmt.Sprintf("; and %d more", more)
				}
			}
			if failure.NeedsPerson && person == nil {
				person = failure
			}
			if failure.Stuck && stuck == nil {
				stuck = failure
			}
		}
	}
	return clip(message), person, stuck
}

// acknowledgeCommand begins the command at the end of a message that requires an acknowledgement.
const acknowledgeCommand = ": kubectl annotate --overwrite cer "

func describe(failure rollout.Failure) string {
	if before, rest, asks := strings.Cut(failure.Message, acknowledgeCommand); asks && (failure.Acknowledge != "" || failure.Reason == rollout.ReasonCRDInstances) {
		return ask(fmt.Sprintf("%s: %s", failure.ID, before), acknowledgeCommand+rest)
	}
	return clip(fmt.Sprintf("%s: %s", failure.ID, failure.Message))
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func clip(message string) string {
	return text.Clip(message, olmv1alpha1.MaxMessageLength)
}

// ask returns a message that ends in a command for users. The command is never cut, because the API
// accepts only the answer in it.
func ask(message, command string) string {
	return text.Clip(message, olmv1alpha1.MaxMessageLength-len(command)) + command
}
