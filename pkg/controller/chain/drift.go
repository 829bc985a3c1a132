package chain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// driftReportedUntil returns the time until which drift of a revision is reported and not repaired;
// zero if drift is repaired.
func driftReportedUntil(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) time.Time {
	if value := revision.Annotations[olmv1alpha1.ReportDriftUntilAnnotation]; value != "" {
		if until, err := olmv1alpha1.ReportsDriftUntil(value, now); err == nil {
			return until
		}
	}
	return time.Time{}
}

// reportsDrift reports whether drift of the leading revision is reported and not repaired.
func (s *scope) reportsDrift() bool {
	for _, layer := range s.layers {
		if !isPaused(layer) {
			return !driftReportedUntil(layer, s.began).IsZero()
		}
	}
	return false
}

// drift writes to the leading revision that drift is only reported, with the objects that differ.
func (w *writer) drift(revision *olmv1alpha1.ClusterExtensionRevision, found finding, leads bool) {
	until := driftReportedUntil(revision, found.began)
	if !leads || until.IsZero() {
		meta.RemoveStatusCondition(&w.status.Conditions, olmv1alpha1.ConditionDriftReported)
		return
	}
	var drift []rollout.Failure
	for _, phase := range found.layer.Phases {
		drift = append(drift, phase.Drift...)
	}
	reason, message := reasonNoDrift, "no object differs; until "+until.UTC().Format(time.RFC3339)+" Penstock would report that and not repair it"
	if len(drift) > 0 {
		const named = 3
		var all []string
		for _, object := range drift[:min(named, len(drift))] {
			all = append(all, describe(object))
		}
		if more := len(drift) - named; more > 0 {
			all = append(all, fmt.Sprintf("and %d more", more))
		}
		reason = reasonDriftFound
		message = fmt.Sprintf("%s changed since the rollout; Penstock repairs that at %s: %s", text.Count(len(drift), "object"), until.UTC().Format(time.RFC3339), strings.Join(all, "; "))
	}
	w.set(olmv1alpha1.ConditionDriftReported, true, reason, clip(message))
}
