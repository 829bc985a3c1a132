package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func annotated(key, value string) change {
	return func(r *olm.ClusterExtensionRevision) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

// TestAnswers: a user can set an acknowledgement when status asks for it, and not before.
func TestAnswers(t *testing.T) {
	const acknowledge, release = v1alpha1.AcknowledgeDeletionAnnotation, v1alpha1.ReleaseHoldAnnotation
	asking := func(kind, reason, message string, status metav1.ConditionStatus) change {
		return func(r *olm.ClusterExtensionRevision) {
			r.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message}}
		}
	}
	budget := asking("Stalled", "BudgetExceeded", "… as 25-0123456789: kubectl annotate --overwrite cer argocd-3 "+acknowledge+"=25-0123456789", metav1.ConditionTrue)
	held := asking("Held", "IsRollback", "… until the hold is released: kubectl annotate cer argocd-3 "+release+"=argocd-2", metav1.ConditionTrue)
	nothing := func(*olm.ClusterExtensionRevision) {}
	paused := func(r *olm.ClusterExtensionRevision) { r.Spec.LifecycleState = olm.LifecycleStatePaused }
	active := func(r *olm.ClusterExtensionRevision) { r.Spec.LifecycleState = olm.LifecycleStateActive }
	both := func(changes ...change) change {
		return func(r *olm.ClusterExtensionRevision) {
			for _, c := range changes {
				c(r)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason      string
		old, change change
		at, says    string
	}{
		"Asked":          {"it is what status says", budget, annotated(acknowledge, "25-0123456789"), "", ""},
		"AskedBeside":    {"an answer of before may stay", both(budget, annotated(acknowledge, "1-a")), annotated(acknowledge, "1-a, 25-0123456789"), "", ""},
		"Another":        {"nobody has asked about these", budget, annotated(acknowledge, "26-0123456789"), acknowledge, `must be "25-0123456789"`},
		"OneMore":        {"nor about these", budget, annotated(acknowledge, "25-0123456789,3-a"), acknowledge, `must be "25-0123456789"`},
		"InAdvance":      {"nothing is held back", nothing, annotated(acknowledge, "25-0123456789"), acknowledge, "asks for nothing at the moment"},
		"NotAnyMore":     {"nothing is held back any more", asking("Stalled", "BudgetExceeded", acknowledge+"=1-a", metav1.ConditionFalse), annotated(acknowledge, "1-a"), acknowledge, "asks for nothing"},
		"WordsOfOthers":  {"a webhook said it", asking("Stalled", "ApplyRejected", "denied: "+acknowledge+"=1-a", metav1.ConditionTrue), annotated(acknowledge, "1-a"), acknowledge, "asks for nothing"},
		"Removed":        {"nothing goes on by that", annotated(acknowledge, "1-a"), annotated(acknowledge, ""), "", ""},
		"Kept":           {"it was set when it could be", annotated(acknowledge, "1-a"), nothing, "", ""},
		"OfADiff":        {"a user who lets it go on has read the diff", paused, both(active, annotated(acknowledge, "2-d")), "", ""},
		"OfNoDiff":       {"nobody has shown these", paused, both(active, annotated(acknowledge, "2-e")), acknowledge, "asks for nothing"},
		"StillPaused":    {"it does not go on", paused, annotated(acknowledge, "2-d"), acknowledge, "asks for nothing"},
		"GoesOnAlready":  {"it went on before", nothing, annotated(acknowledge, "2-d"), acknowledge, "asks for nothing"},
		"ReleasedByDiff": {"a hold is another question", paused, both(active, annotated(release, "2-d")), release, "asks for nothing"},
		"Released":       {"it is what status says", held, annotated(release, "argocd-2"), "", ""},
		"ReleasesLater":  {"that rollback is none yet", held, annotated(release, "argocd-4"), release, `must be "argocd-2"`},
		"ReleasesNobody": {"nobody is held", nothing, annotated(release, "argocd-4"), release, "asks for nothing at the moment"},
	} {
		t.Run(name, func(t *testing.T) {
			old := revision(tc.old)
			updated := old.DeepCopy()
			tc.change(updated)
			var found []string
			for _, err := range ValidateRevisionUpdate(updated, old, "2-d") {
				found = append(found, err.Error())
			}
			wrong := tc.at == "" && len(found) > 0 || tc.at != "" && !slices.ContainsFunc(found, func(err string) bool {
				return strings.Contains(err, "metadata.annotations["+tc.at+"]") && strings.Contains(err, tc.says)
			})
			if wrong {
				t.Errorf("%s: got %q, want %q", tc.reason, found, tc.says)
			}
		})
	}
	for _, key := range []string{acknowledge, release} {
		created := revision(annotated(key, "argocd-3"))
		if errs := ValidateRevision(created); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must not be set when a revision is created") {
			t.Errorf("%s of a new revision: got %v", key, errs)
		}
	}
}
