package metriccheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Interval is the time between two queries of a MetricCheck for a revision.
const Interval = 30 * time.Second

// Judge returns the verdict of measurements for a rollout. Its objects have been Available since a
// time, and it succeeds at end at the earliest. Earlier measurements do not count. A single No
// gives No. Yes needs a Yes of each MetricCheck at the end, or at most an Interval before. The
// verdict is empty while all missing answers may still come. The message names the decisive
// MetricCheck.
func Judge(names []string, measured []v1alpha1.MetricMeasurement, since, end time.Time) (verdict v1alpha1.MetricVerdict, message string) {
	verdict = v1alpha1.MetricYes
	for _, name := range names {
		said, why := v1alpha1.MetricVerdict(""), "MetricCheck "+name+" has not answered yet"
		if last := Find(measured, name); last != nil && !last.Time.Time.Before(since.Truncate(time.Second)) {
			switch {
			case last.Verdict == v1alpha1.MetricNo:
				return v1alpha1.MetricNo, fmt.Sprintf("MetricCheck %s says No: %s", name, last.Message)
			case last.Verdict != v1alpha1.MetricYes:
				said, why = v1alpha1.MetricUnknown, fmt.Sprintf("MetricCheck %s is Unknown: %s", name, last.Message)
			case !last.Time.Time.Before(end.Add(-Interval).Truncate(time.Second)):
				said = v1alpha1.MetricYes
			}
		}
		if said != v1alpha1.MetricYes && verdict != v1alpha1.MetricUnknown && (verdict != "" || said != "") {
			verdict, message = said, why
		}
	}
	return verdict, message
}

// Find returns the measurement of a MetricCheck; nil for none.
func Find(measured []v1alpha1.MetricMeasurement, name string) *v1alpha1.MetricMeasurement {
	if i := slices.IndexFunc(measured, func(m v1alpha1.MetricMeasurement) bool { return m.Name == name }); i >= 0 {
		return &measured[i]
	}
	return nil
}
