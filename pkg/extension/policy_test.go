package extension

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestParsePolicy(t *testing.T) {
	all := map[string]string{
		ApprovalAnnotation: "Manual", ProgressDeadlineAnnotation: "30", SuccessDelayAnnotation: "60", OnFailureAnnotation: "Rollback",
		CollisionProtectionAnnotation: "IfNoController", TeardownPolicyAnnotation: "Orphan", TargetAnnotation: "edge-1", AcceptRequirementsAnnotation: "true",
		YieldAnnotation:  `[{selector: {groupKind: {group: apps, kind: Deployment}, name: lamp}, fields: ["spec.template.spec.containers[*].resources"]}]`,
		AuthorAnnotation: "me", "example.com/other": "x",
	}
	got, errs := ParsePolicy(all)
	want := Policy{Approval: "Manual", ProgressDeadlineMinutes: ptr.To[int32](30), SuccessDelaySeconds: 60, OnFailure: "Rollback",
		CollisionProtection: "IfNoController", TeardownPolicy: "Orphan", Target: "edge-1", AcceptRequirements: true,
		Yield: []v1alpha1.YieldRule{{Selector: v1alpha1.YieldSelector{GroupKind: metav1.GroupKind{Group: "apps", Kind: "Deployment"}, Name: "lamp"}, Fields: []string{"spec.template.spec.containers[*].resources"}}}}
	if len(errs) > 0 || !cmp.Equal(got, want) {
		t.Errorf("%v %s", errs, cmp.Diff(want, got))
	}
	got, errs = ParsePolicy(nil)
	if want := (Policy{Approval: "Automatic", OnFailure: "None", CollisionProtection: "Prevent", TeardownPolicy: "Delete"}); len(errs) > 0 || !cmp.Equal(got, want) {
		t.Errorf("%v %s", errs, cmp.Diff(want, got))
	}
}

func TestValidateAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		key, value string
		old        map[string]string
		updated    bool
		wants      string
	}{
		"Approval":      {reason: "allowed", key: ApprovalAnnotation, value: "Automatic"},
		"OtherApproval": {reason: "not allowed", key: ApprovalAnnotation, value: "manual", wants: `metadata.annotations[penstock.dev/upgrade-approval]: Unsupported value: "manual": supported values: "Automatic", "Reviewed", "Manual"`},
		"EmptyApproval": {reason: "not allowed", key: ApprovalAnnotation, value: "", wants: `supported values: "Automatic", "Reviewed", "Manual"`},
		"NoDeadline":    {reason: "zero is none", key: ProgressDeadlineAnnotation, value: "0"},
		"Deadline":      {reason: "the longest", key: ProgressDeadlineAnnotation, value: "10080"},
		"LongDeadline":  {reason: "longer", key: ProgressDeadlineAnnotation, value: "10081", wants: `metadata.annotations[penstock.dev/progress-deadline-minutes]: Invalid value: "10081": it must be a number of minutes from 0 to 10080`},
		"Duration":      {reason: "no number", key: ProgressDeadlineAnnotation, value: "30m", wants: "number of minutes"},
		"Plus":          {reason: "no number", key: SuccessDelayAnnotation, value: "+1", wants: "number of seconds from 0 to 86400"},
		"Negative":      {reason: "no number", key: SuccessDelayAnnotation, value: "-1", wants: "number of seconds"},
		"Zeroes":        {reason: "written in one way", key: SuccessDelayAnnotation, value: "007", wants: "number of seconds"},
		"Huge":          {reason: "no number", key: SuccessDelayAnnotation, value: strings.Repeat("9", 40), wants: "number of seconds"},
		"Metrics":       {reason: "allowed", key: MetricChecksAnnotation, value: "error-rate, latency"},
		"NoMetric":      {reason: "empty", key: MetricChecksAnnotation, value: " ,", wants: "it must name MetricChecks"},
		"OnFailure":     {reason: "not allowed", key: OnFailureAnnotation, value: "Retry", wants: `supported values: "None", "Rollback"`},
		"Collision":     {reason: "not allowed", key: CollisionProtectionAnnotation, value: "Force", wants: `supported values: "Prevent", "IfNoController", "None"`},
		"Teardown":      {reason: "not allowed", key: TeardownPolicyAnnotation, value: "Keep", wants: `supported values: "Delete", "Orphan"`},
		"Requirements":  {reason: "not allowed", key: AcceptRequirementsAnnotation, value: "yes", wants: `supported values: "true", "false"`},
		"Yield":         {reason: "allowed, also as JSON", key: YieldAnnotation, value: `[{"selector":{"groupKind":{"group":"apps","kind":"Deployment"}},"fields":["spec.replicas"]}]`},
		"Patches":       {reason: "allowed", key: PatchesAnnotation, value: "[{target: {kind: Service}, type: Merge, patch: {spec: {type: NodePort}}}]"},
		"PatchesNoList": {reason: "no list", key: PatchesAnnotation, value: "{}", wants: "metadata.annotations[penstock.dev/patches]: Invalid value: \"a list of patches\": it must be a list of patches, such as [{target:"},
		"YieldNoList":   {reason: "no list", key: YieldAnnotation, value: "spec.replicas", wants: "metadata.annotations[penstock.dev/yield]: Invalid value: \"spec.replicas\": it must be a list as spec.yield of a revision, such as [{selector:"},
		"YieldUnknown":  {reason: "a misspelt field has no effect", key: YieldAnnotation, value: "[{selector: {groupKind: {kind: Service}}, field: [spec.ports]}]", wants: `unknown field "field"`},
		"YieldTwice":    {reason: "one of the two would have no effect", key: YieldAnnotation, value: "[{fields: [a], fields: [b]}]", wants: `key "fields" already set`},
		"YieldEmpty":    {reason: "it would have no effect", key: YieldAnnotation, value: "[]", wants: "it has no rule: remove the annotation"},
		"YieldBlank":    {reason: "it would have no effect", key: YieldAnnotation, value: "", wants: "it has no rule"},
		"Target":        {reason: "no name", key: TargetAnnotation, value: "Edge 1", wants: "the name of a Secret"},
		"NewTarget":     {reason: "it does not change", key: TargetAnnotation, value: "edge-2", old: map[string]string{TargetAnnotation: "edge-1"}, updated: true, wants: `it was "edge-1"`},
		"LateTarget":    {reason: "it does not change", key: TargetAnnotation, value: "edge-2", updated: true, wants: `it was ""`},
		"SameTarget":    {reason: "as it was", key: TargetAnnotation, value: "edge-1", old: map[string]string{TargetAnnotation: "edge-1"}, updated: true},
		"HoldOn":        {reason: "a list", key: HoldOnAnnotation, value: "RightsGained:Info, Deleted"},
		"HoldOnOther":   {reason: "no reason", key: HoldOnAnnotation, value: "Deleted,Rights", wants: `metadata.annotations[penstock.dev/hold-on]: Invalid value: "Deleted,Rights": "Rights" is no reason of a note: it must be one of Deleted, RightsGained`},
		"Misspelt":      {reason: "it would have no effect", key: "penstock.dev/upgrade-aproval", value: "Manual", wants: "must be one of penstock.dev/upgrade-approval,"},
		"WrongBefore":   {reason: "an object must not become one that nobody can write", key: ApprovalAnnotation, value: "x", old: map[string]string{ApprovalAnnotation: "x"}, updated: true},
		"WrongAgain":    {reason: "it is changed", key: ApprovalAnnotation, value: "y", old: map[string]string{ApprovalAnnotation: "x"}, updated: true, wants: "Unsupported value"},
		"Others":        {reason: "not ours", key: "example.com/penstock.dev", value: "x"},
		"Author":        {reason: "stamps are checked elsewhere", key: AuthorAnnotation, value: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateAnnotations(map[string]string{tc.key: tc.value}, tc.old, !tc.updated)
			if (len(errs) == 0) != (tc.wants == "") || tc.wants != "" && !strings.Contains(errs.ToAggregate().Error(), tc.wants) {
				t.Errorf("%s: %v, want %q", tc.reason, errs.ToAggregate(), tc.wants)
			}
		})
	}
	if errs := ValidateAnnotations(nil, map[string]string{TargetAnnotation: "edge-1"}, false); len(errs) != 1 {
		t.Errorf("the target is taken away: %v", errs)
	}
}
