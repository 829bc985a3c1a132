package screens

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestTimeline: each source shows what happened, when, and by whom. A fact in two sources is shown
// once.
func TestTimeline(t *testing.T) {
	at := func(minute int) *metav1.Time {
		at := metav1.NewTime(time.Date(2026, 11, 28, 9, minute, 0, 0, time.UTC))
		return &at
	}
	event := func(minute int, kind, reason, message string) Entry {
		return ofEvent(Event{Time: when(at(minute)), Type: kind, Reason: reason, Message: message, Kind: kindRevision, Name: "shop-2", Count: 1})
	}
	record := func(row olmv1alpha1.RevisionRecord, why string) []Entry {
		row.Name, row.Version = "shop-2", "1.5.0"
		return ofRecord(&row, why)
	}
	repair := func(by, message string, count int32) Entry {
		return ofRepair(&olmv1alpha1.RepairRecord{Object: olmv1alpha1.ObjectName{Kind: "ConfigMap", Namespace: "a", Name: "x"}, Revision: "shop-2", Manager: by, Message: message, Count: count, FirstAt: *at(4), LastAt: *at(5)})
	}
	revision := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "shop-2"}}
	for minute, condition := range []metav1.Condition{
		{Type: "Failing", Status: "True", Reason: "Collision"}, {Type: "Held", Status: "False", Reason: "Free"}, {Type: "Progressing", Status: "False", Reason: "Frozen", Message: "by ops"},
	} {
		condition.LastTransitionTime = *at(minute)
		revision.Status.Conditions = append(revision.Status.Conditions, condition)
	}
	approval := hcov1alpha1.PlanApproval{Username: "anna", Time: *at(1), Comment: "go", Others: []hcov1alpha1.PlanApprover{{Username: "bert", Time: *at(2)}}}
	run := hcov1alpha1.PlanRun{Run: 2, RestoreRun: 1, Approval: approval, StartedAt: *at(3), EndedAt: at(4), Outcome: hcov1alpha1.PhaseFailed}
	for name, tc := range map[string]struct {
		told, events []Entry
		want         []string
	}{
		"Created":  {told: record(olmv1alpha1.RevisionRecord{CreatedAt: at(1), RequestedBy: "anna", Cause: "CHG-1"}, ""), want: []string{"01  Created by anna: version 1.5.0: CHG-1"}},
		"Approved": {told: record(olmv1alpha1.RevisionRecord{CreatedAt: at(1), ApprovedAt: at(2), RequestedBy: "anna"}, "read it"), want: []string{"02  Approved by anna: version 1.5.0: read it", "01  Proposed by : version 1.5.0"}},
		"WentBack": {told: record(olmv1alpha1.RevisionRecord{CreatedAt: at(1), RollbackOf: "shop-1", RequestedBy: "bert", Cause: "slow"}, ""), want: []string{"01  WentBack by bert: to shop-1: version 1.5.0: slow"}},
		"AtOnce":   {told: record(olmv1alpha1.RevisionRecord{CreatedAt: at(1), CompletedAt: at(1)}, ""), want: []string{"01 well Succeeded by : version 1.5.0", "01  Created by : version 1.5.0"}},
		"Ended":    {told: record(olmv1alpha1.RevisionRecord{CompletedAt: at(2), DeletedAt: at(3)}, ""), want: []string{"03  Deleted by : version 1.5.0", "02 well Succeeded by : version 1.5.0"}},
		"Troubles": {told: ofConditions(revision), want: []string{"02 review Frozen by : Frozen: by ops", "00 needs Failing by : Collision:"}},
		"Run": {told: append(ofApproval("larger", approval), ofRun("larger", &run)...), want: []string{
			"04 needs Failed by : run 2, undo of run 1", "03  RunBegan by : run 2, undo of run 1", "02  Approved by bert: ", "01  Approved by anna: go",
		}},
		"Repaired": {told: []Entry{repair("mallory", ".data.k was changed by mallory", 1), repair("", "someone had deleted it", 3)}, want: []string{
			"05 review Repaired by : ConfigMap a/x: someone had deleted it, first 2026-11-28T09:04:00Z", "05 review Repaired by mallory: ConfigMap a/x: .data.k was changed by mallory",
		}},
		"Twice": {
			told:   record(olmv1alpha1.RevisionRecord{CompletedAt: at(3)}, ""),
			events: []Entry{event(3, "Normal", "Succeeded", "complete"), event(7, "Normal", "Succeeded", "again"), event(2, "Normal", "PhaseAvailable", "one"), event(2, "Normal", "PhaseAvailable", "two")},
			want:   []string{"07 well Succeeded by : again", "03 well Succeeded by : version 1.5.0", "02  PhaseAvailable by : two", "02  PhaseAvailable by : one"},
		},
		"WithoutTime": {events: []Entry{{What: "Stuck"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range joined(tc.told, tc.events) {
				got = append(got, fmt.Sprintf("%s %s %s by %s: %s", one.Time[14:16], one.Signal, one.What, one.Who, one.Message))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}
