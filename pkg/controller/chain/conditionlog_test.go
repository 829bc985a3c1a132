package chain

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestConditionLog: a changed condition is logged with the key of all lines about a revision.
func TestConditionLog(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: olmv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}
	}
	cases := map[string]struct {
		reason        string
		before, after []metav1.Condition
		want          string
	}{
		"First":   {reason: "there was none", after: []metav1.Condition{condition("False", "RollingOut", "0 of 2")}, want: `revision="argocd-2" condition="Available" status="False" reason="RollingOut" message="0 of 2"`},
		"Changed": {reason: "another status", before: []metav1.Condition{condition("False", "RollingOut", "")}, after: []metav1.Condition{condition("True", "Ready", "")}, want: `status="True"`},
		"Counted": {reason: "a message that counts on", before: []metav1.Condition{condition("False", "RollingOut", "0 of 2")}, after: []metav1.Condition{condition("False", "RollingOut", "1 of 2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			revision := &olmv1alpha1.ClusterExtensionRevision{}
			revision.Name, revision.Status.Conditions = "argocd-2", tc.before
			logConditions(klog.NewContext(t.Context(), log), revision, tc.after)
			said := log.GetSink().(ktesting.Underlier).GetBuffer().String()
			if (tc.want == "") != (said == "") || !strings.Contains(said, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, said, tc.want)
			}
		})
	}
}
