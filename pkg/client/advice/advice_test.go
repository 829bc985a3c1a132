package advice

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/rollout"
)

type change func(*v1alpha1.ClusterExtensionRevision)

// revision returns a revision with conditions written as "Type=Status/Reason: message".
func revision(number int64, change change, conditions ...string) *v1alpha1.ClusterExtensionRevision {
	r := &v1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "argocd-" + strconv.FormatInt(number, 10)}}
	r.Spec.Revision, r.Spec.LifecycleState = number, v1alpha1.LifecycleStateActive
	for _, text := range conditions {
		r.Status.Conditions = append(r.Status.Conditions, condition(text))
	}
	if change != nil {
		change(r)
	}
	return r
}

func condition(text string) metav1.Condition {
	kind, rest, _ := strings.Cut(text, "=")
	status, rest, _ := strings.Cut(rest, "/")
	reason, message, _ := strings.Cut(rest, ": ")
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

func lifecycle(state v1alpha1.LifecycleState) change {
	return func(r *v1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = state }
}

func deleted(r *v1alpha1.ClusterExtensionRevision) {
	r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func TestExtension(t *testing.T) {
	well := []string{"Progressing=False/RolledOut", "Available=True/RolledOut", "Succeeded=True/RolledOut", "Ready=True/RolledOut: 13 objects are as rolled out"}
	twoPhases := func(r *v1alpha1.ClusterExtensionRevision) {
		r.Status.Phases = []v1alpha1.PhaseStatus{{Name: "crds", State: v1alpha1.PhaseStateAvailable}, {Name: "deploy", State: v1alpha1.PhaseStateProgressing, Objects: 8, Available: 3, Superseded: 1}}
	}
	holds := func(reason, cause string) change {
		return func(r *v1alpha1.ClusterExtensionRevision) {
			failure := v1alpha1.ObjectFailure{Kind: "Deployment", Namespace: "argocd", Name: "server", Reason: reason, Message: "it is so"}
			if cause != "" {
				failure.Cause = &v1alpha1.FailureCause{Reason: cause}
			}
			r.Status.Phases = []v1alpha1.PhaseStatus{{Name: "deploy", State: v1alpha1.PhaseStateProgressing, Objects: 1, Failing: []v1alpha1.ObjectFailure{failure}}}
		}
	}
	unready := func(r *v1alpha1.ClusterExtensionRevision) {
		r.Status.Phases = []v1alpha1.PhaseStatus{{Name: "deploy", Failing: []v1alpha1.ObjectFailure{{Reason: "ProbeFailed"}}}}
	}
	for name, tc := range map[string]struct {
		reason    string
		revisions []*v1alpha1.ClusterExtensionRevision
		want      []string
	}{
		"None":  {reason: "nothing is installed", want: []string{"the extension has no revision. The author of the revisions must make one. The command: kubectl penstock deploy"}},
		"Young": {reason: "no status yet", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil)}, want: []string{"argocd-1 has not been looked at yet. An administrator of Penstock must make sure that a replica leads, if this lasts. The command: kubectl penstock check"}},
		"Well":  {reason: "there is nothing to do", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, well...)}, want: []string{"argocd-1 is rolled out and available: 13 objects are as rolled out."}},
		"RollingOut": {
			reason: "how far it is", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, twoPhases, "Progressing=True/RollingOut: phase deploy (2 of 2): Deployment argocd/server: 0 of 1 replicas available")},
			want: []string{"argocd-1 is rolling out, phase deploy (2 of 2, 4 of 8 objects): Deployment argocd/server: 0 of 1 replicas available. It continues by itself."},
		},
		"Repairing": {reason: "drift", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, twoPhases, "Progressing=True/Repairing: x", "Succeeded=True/RolledOut")}, want: []string{"argocd-1 is being repaired: x. It continues by itself."}},
		"Soaking": {
			reason: "only time is missing", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=True/Soaking: until noon")},
			want: []string{"argocd-1 is complete, and has to stay so for a while: until noon. It succeeds by itself when that time is over."},
		},
		"WaitingForLevel": {
			reason: "another extension is first", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=True/WaitingForLevel: 3 objects wait")},
			want: []string{"argocd-1 waits for an earlier install level: 3 objects wait. It continues by itself when the objects of the earlier level are there."},
		},
		"Collision": {
			reason: "a person has to decide", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=True/RollingOut", "Failing=True/Collision: Deployment argocd/server: exists already", "Stalled=True/Collision: the same")},
			want: []string{"argocd-1 fails: Deployment argocd/server: exists already. The author of the revisions must have the next revision take the object over with collisionProtection, or leave it out of the next revision; delete the object only if it holds no data."},
		},
		"Contested": {
			reason:    "two writers, of which conditions say only that it is repaired",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, holds("Contested", ""), "Progressing=True/Repairing: it is repaired", "Succeeded=True/RolledOut")},
			want:      []string{"argocd-1 is being repaired: Deployment argocd/server: it is so. The author of the revisions must choose an option of the message; without an option, stop the other writer, or leave the field to it: list the field in yield in the next revision."},
		},
		"ContestedByHelm": {
			reason:    "of several ways none is told as the only one",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Failing=True/Contested: Helm has revision 7. Adopt the newer one (kubectl penstock adopt helm a -n a), or keep what Penstock has (kubectl annotate --overwrite cer a-1 b=c)", "Progressing=True/Repairing: it is repaired")},
			want:      []string{"argocd-1 fails: Helm has revision 7. Adopt the newer one (kubectl penstock adopt helm a -n a), or keep what Penstock has (kubectl annotate --overwrite cer a-1 b=c). The author of the revisions must choose an option of the message; without an option, stop the other writer, or leave the field to it: list the field in yield in the next revision."},
		},
		"Crashing": {
			reason:    "a cause that is known does not go away by waiting",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(2, holds("ProbeFailed", "CrashLoopBackOff"), "Progressing=True/RollingOut: x"), revision(1, nil, append(well, "Progressing=False/Superseded")...)},
			want:      []string{"argocd-2 is rolling out, phase deploy (1 of 1, 0 of 1 objects): Deployment argocd/server: it is so. The author of the revisions must correct that in the next revision, or roll back. The command: kubectl penstock rollback argocd"},
		},
		"CrashingAlone": {
			reason:    "there is nothing to roll back to",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, holds("ProbeFailed", "CrashLoopBackOff"), "Progressing=True/RollingOut: x")},
			want:      []string{"argocd-1 is rolling out, phase deploy (1 of 1, 0 of 1 objects): Deployment argocd/server: it is so. The author of the revisions must correct that in the next revision."},
		},
		"CrashingLast": {
			reason:    "nobody rolls back to what is being deleted",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(2, holds("ProbeFailed", "CrashLoopBackOff"), "Progressing=True/RollingOut: x"), revision(1, deleted, well...)},
			want:      []string{"argocd-2 is rolling out, phase deploy (1 of 1, 0 of 1 objects): Deployment argocd/server: it is so. The author of the revisions must correct that in the next revision."},
		},
		"Starting": {
			reason:    "that is how rollouts begin",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, holds("ProbeFailed", "Starting"), "Progressing=True/RollingOut: x")},
			want:      []string{"argocd-1 is rolling out, phase deploy (1 of 1, 0 of 1 objects): x. It continues by itself."},
		},
		"BudgetExceeded": {
			reason: "the message has the answer",
			revisions: []*v1alpha1.ClusterExtensionRevision{
				revision(2, nil, well...),
				revision(1, lifecycle(v1alpha1.LifecycleStateArchived), "Progressing=True/TearingDown", "Failing=True/BudgetExceeded: 40 objects would go: kubectl annotate --overwrite cer argocd-1 penstock.dev/acknowledge-deletion=abc"),
			},
			want: []string{
				"argocd-1 fails: 40 objects would go. The author of the revisions must read what would be deleted, and acknowledge it if you want that. The command: kubectl annotate --overwrite cer argocd-1 penstock.dev/acknowledge-deletion=abc",
				"argocd-2 is rolled out and available: 13 objects are as rolled out.",
			},
		},
		"Deadline": {
			reason: "stuck, and no rollback by itself", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=True/RollingOut", "Stalled=True/ProgressDeadlineExceeded: it takes longer than 10 minutes", "RolledBack=False/NoEarlierSuccess: no earlier revision has succeeded")},
			want: []string{"argocd-1 does not go on: it takes longer than 10 minutes; it is not rolled back by itself: no earlier revision has succeeded. The author of the revisions must correct the error in the next revision: no earlier revision has succeeded."},
		},
		"Frozen": {
			reason: "somebody said so", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=False/Frozen: frozen by alice: the year ends; nothing is written")},
			want: []string{"argocd-1 waits for the end of a freeze: frozen by alice: the year ends; nothing is written. An administrator of the cluster must end the freeze: delete the ConfigMap penstock-freeze in the namespace of Penstock. The command: kubectl penstock unfreeze"},
		},
		"Proposed": {
			reason: "what was never rolled out waits to be read, and what runs meanwhile is told",
			revisions: []*v1alpha1.ClusterExtensionRevision{
				revision(1, nil, well...),
				revision(2, lifecycle(v1alpha1.LifecycleStatePaused), "Progressing=False/Paused: the revision is paused: nothing is written", "Ready=True/Paused"),
			},
			want: []string{
				"argocd-2 is proposed, and waits for approval. An approver must review it, and approve it. The command: kubectl penstock resume argocd-2",
				"argocd-1 is rolled out and available: 13 objects are as rolled out.",
			},
		},
		"PausedBecause": {
			reason: "somebody has said why", revisions: []*v1alpha1.ClusterExtensionRevision{
				revision(1, func(r *v1alpha1.ClusterExtensionRevision) {
					r.Spec.LifecycleState, r.Annotations = v1alpha1.LifecycleStatePaused, map[string]string{overview.ReasonAnnotation: "INC-7"}
				}, "Succeeded=True/RolledOut", "Progressing=False/Paused: the revision is paused: nothing is written", "Ready=True/Paused"),
			},
			want: []string{"argocd-1 is paused: INC-7. The author of the revisions must resume it. The command: kubectl penstock resume argocd-1"},
		},
		"Held": {
			reason:    "the extension is well, and its owner is kept",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(3, nil, append(slices.Clone(well), "Held=True/IsRollback: argocd-3 is a rollback: ClusterExtension argocd makes no revision until the hold is released: kubectl annotate cer argocd-3 penstock.dev/release-hold=argocd-3")...)},
			want: []string{
				"argocd-3 keeps the owner from making revisions: argocd-3 is a rollback: ClusterExtension argocd makes no revision until the hold is released. The author of the revisions must change the owner, so that it rolls out something else, or release the hold. The command: kubectl penstock resume argocd",
				"argocd-3 is rolled out and available: 13 objects are as rolled out.",
			},
		},
		"TargetUnavailable": {
			reason: "another cluster", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=False/TargetUnavailable: no answer", "Failing=False/TargetUnavailable: no answer")},
			want: []string{"argocd-1 waits for its cluster: no answer. An administrator of the cluster must make the cluster that the revision names usable, and the Secret with its kubeconfig; Penstock tries again by itself."},
		},
		"Unavailable": {
			reason: "it was rolled out once; the object says more than the condition",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, unready, "Progressing=False/RolledOut", "Succeeded=True/RolledOut",
				"Available=False/Unavailable: phase deploy (1 of 1): Deployment argocd/server: CrashLoopBackOff")},
			want: []string{"argocd-1 is not available: phase deploy (1 of 1): Deployment argocd/server: CrashLoopBackOff. The author of the revisions must correct that in the next revision."},
		},
		"UnavailableAndStays": {
			reason:    "why no rollback came by itself is what is left to do",
			revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, unready, "Progressing=False/RolledOut", "Succeeded=True/RolledOut", "RolledBack=False/IsRollback: argocd-1 is a rollback", "Available=False/Unavailable: x")},
			want:      []string{"argocd-1 is not available: x; it is not rolled back by itself: argocd-1 is a rollback. The author of the revisions must make the next revision: this revision is a rollback."},
		},
		"Unknown": {
			reason: "nothing is known", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=False/RolledOut", "Succeeded=True/RolledOut", "Available=Unknown/Unknown: watches do not answer")},
			want: []string{"argocd-1 was available, but it is not known whether it still is: watches do not answer. It is known when the cluster answers."},
		},
		"Archived": {reason: "the end", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, lifecycle(v1alpha1.LifecycleStateArchived), "Progressing=False/Archived")}, want: []string{"argocd-1 is archived."}},
		"Deleted":  {reason: "on its way out", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, deleted, "Progressing=True/TearingDown: 2 objects are still to go")}, want: []string{"argocd-1 is being deleted: 2 objects are still to go. It ends when its objects are deleted."}},
		"Unreadable": {
			reason: "the record is damaged", revisions: []*v1alpha1.ClusterExtensionRevision{revision(0, func(r *v1alpha1.ClusterExtensionRevision) {
				r.ObjectMeta = objectmeta.Unreadable("argocd-1", os.ErrInvalid)
			})},
			want: []string{"argocd-1 cannot be read: invalid argument. An administrator of Penstock must restore the store from a snapshot, or delete the record (runbook PenstockStoreUnreadable)."},
		},
		"ReasonOfTomorrow": {
			reason: "a newer server", revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, nil, "Progressing=True/RollingOut", "Failing=True/Tomorrow: do that")},
			want: []string{"argocd-1 fails: do that. The author of the revisions must do what the message says, or ask with a newer version of this program."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range Extension(append(overview.Of(tc.revisions), overview.Extension{})[0]) {
				got = append(got, a.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		phase      hcov1alpha1.Phase
		message    string
		conditions []string
		want       string
	}{
		"Review":  {hcov1alpha1.PhaseReviewRequired, "2 items", []string{"Ready=False/ReviewRequired"}, "plan a waits for its approval: 2 items. An approver of plans must review and approve it. The command: kubectl penstock plan approve a"},
		"Rights":  {hcov1alpha1.PhaseFailed, "alice approved the plan and cannot create x", []string{"Ready=False/ApproverLacksRights"}, "plan a has failed: alice approved the plan and cannot create x. An approver of plans must have it computed again (retry), and approved by a user with the rights for its changes. The command: kubectl penstock plan run a"},
		"Drifted": {hcov1alpha1.PhaseDrifted, "bob changed .spec", []string{"Ready=False/ConfigurationDrifted"}, "plan a was carried out, but its targets were changed since: bob changed .spec. The author of the plan must settle with the person or controller that changed it, or have the plan computed again (retry), and review it. The command: kubectl penstock plan run a"},
		"Frozen": {hcov1alpha1.PhaseInProgress, (&rollout.Freeze{Author: "alice", Reason: "the year ends"}).String() + "; nothing is written", []string{"Ready=False/InProgress"},
			"plan a waits for the end of a freeze: frozen by alice: the year ends; nothing is written. An administrator of the cluster must end the freeze: delete the ConfigMap penstock-freeze in the namespace of Penstock. The command: kubectl penstock unfreeze"},
		"Second": {hcov1alpha1.PhaseReviewRequired, "1 of 2 approvals: approved by bob; another person approves it by a POST of hash h to the subresource approve: kubectl penstock plan approve a", []string{"Ready=False/ReviewRequired"},
			"plan a waits for its approval: 1 of 2 approvals: approved by bob; another person approves it by a POST of hash h to the subresource approve. An approver of plans must review and approve it. The command: kubectl penstock plan approve a"},
		"Scheduled": {hcov1alpha1.PhaseScheduled, "approved; it begins when its window opens at noon", []string{"Ready=False/WaitingForWindow"}, "plan a is approved, and waits for its turn: approved; it begins when its window opens at noon. It continues by itself when the window opens."},
		"Window":    {hcov1alpha1.PhaseInProgress, "item 2 of 2 waits", []string{"Ready=False/WaitingForWindow"}, "plan a is being carried out: item 2 of 2 waits. It continues by itself when the window opens."},
		"Progress":  {hcov1alpha1.PhaseInProgress, "item 1 of 2", []string{"Ready=False/InProgress"}, "plan a is being carried out: item 1 of 2. It continues by itself."},
		"Done":      {hcov1alpha1.PhaseCompleted, "", []string{"Ready=True/Completed"}, "plan a is carried out."},
		"Outdated":  {hcov1alpha1.PhaseCompleted, "", []string{"Ready=True/Completed", "UpgradeAvailable=True/LogicChanged"}, "plan a is carried out, but would be different today. The author of the plan must have the plan computed again (retry), and review it: it would be different today. The command: kubectl penstock plan run a"},
		"Young":     {"", "", nil, "plan a has not been looked at yet. It is computed soon; if this lasts, make sure that a replica of Penstock leads."},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &hcov1alpha1.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			plan.Status.Phase, plan.Status.Message = tc.phase, tc.message
			for _, text := range tc.conditions {
				plan.Status.Conditions = append(plan.Status.Conditions, condition(text))
			}
			if diff := cmp.Diff(tc.want, Plan(plan).String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryReasonHasAdvice: each reason that the program writes has an entry, and each entry
// belongs to a reason. So a new reason needs its advice in the same change.
func TestEveryReasonHasAdvice(t *testing.T) {
	// Held is a condition with only one reason. Proposed and WaitingForWindow are states of paused
	// revisions.
	own := []string{"Held", "Proposed", "WaitingForWindow"}
	for name, tc := range map[string]struct {
		folders []string
		steps   map[string]step
	}{
		"Revisions": {[]string{"../../controller/chain", "../../rollout", "../../apis/objectmeta", "../../registry/olm/clusterextensionrevision"}, revisionSteps()},
		"Plans":     {[]string{"../../governance", "../../apis/objectmeta"}, planSteps()},
		"Ready":     {[]string{"../../extension/status"}, extensionSteps()},
	} {
		t.Run(name, func(t *testing.T) {
			written := map[string]string{}
			for _, folder := range tc.folders {
				reasonsIn(t, folder, written)
			}
			if len(written) < 15 {
				t.Fatalf("only %d reasons are found: where are they?", len(written))
			}
			for reason, where := range written {
				if _, known := tc.steps[reason]; !known && !elsewhere(reason, name) {
					t.Errorf("%s writes the reason %s, and advice has no entry for it: say in reasons.go who must do what", where, reason)
				}
			}
			for reason, step := range tc.steps {
				if written[reason] == "" && !slices.Contains(own, reason) {
					t.Errorf("nothing writes the reason %s any more", reason)
				}
				if step.signal == "" || step.who == "" || step.do == "" && step.who != Nobody {
					t.Errorf("reason %s: how is it, and who must do what?", reason)
				}
				if step.who != Nobody && step.command == "" && step.example == "" {
					t.Errorf("reason %s: by which command?", reason)
				}
			}
		})
	}
}

// elsewhere reports whether a reason in the package of the condition Ready is treated elsewhere. It
// may be among the reasons of revisions, or belong to another condition.
func elsewhere(reason, table string) bool {
	if table != "Ready" {
		return false
	}
	if _, known := revisionSteps()[reason]; known {
		return true
	}
	// These reasons are of other conditions: those of OLM v1, and UpgradeAvailable.
	return slices.Contains([]string{"Failed", "Absent", "Retrying", "Blocked", "ProbesSucceeded", "ProbeFailure", "Reconciling", "Deprecated", "NotDeprecated", "DeprecationStatusUnknown",
		"Allowed", "NewestInstalled", "CatalogDataUnavailable", "NotFromCatalog", "Settled"}, reason)
}

// TestRollBackToSomething: every step that offers a rollback has an alternative for extensions
// whose earlier revisions have not succeeded.
func TestRollBackToSomething(t *testing.T) {
	offers := func(do, command string) bool { return strings.Contains(do, "roll back") || command == rollBack }
	found := 0
	for reason, step := range revisionSteps() {
		answers := []answer{{step.do, step.command, step.alone}}
		if step.catalog != nil {
			answers = append(answers, *step.catalog)
		}
		for _, one := range answers {
			if !offers(one.do, one.command) {
				continue
			}
			found++
			if one.alone == nil || one.alone.do == "" || offers(one.alone.do, one.alone.command) {
				t.Errorf("reason %s: where there is nothing to roll back to it says %+v", reason, one.alone)
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d answers offer to roll back", found)
	}
}

// TestForItsReader: a user of a catalog creates no revisions, so no advice for that user asks for a
// revision.
func TestForItsReader(t *testing.T) {
	for reason, step := range revisionSteps() {
		answer := answer{do: step.do, command: step.command}
		if step.catalog != nil {
			answer = *step.catalog
		}
		if step.who == Planner {
			continue
		}
		if said := answer.do + " " + answer.command; strings.Contains(said, "next revision") || strings.Contains(said, "deploy") || strings.Contains(said, "inline") {
			t.Errorf("reason %s: the user of a catalog is told %q", reason, said)
		}
	}
}

var update = flag.Bool("update", false, "write the tables of docs/reference/reasons.md")

// TestPage: the tables of the pages of reasons match the code.
func TestPage(t *testing.T) {
	for _, part := range []struct {
		page, after string
		steps       map[string]step
	}{
		{"reasons.md", "## Of revisions\n\n", revisionSteps()}, {"reasons.md", "## Of plans\n\n", planSteps()},
		{"clusterextension-status.md", "## Reasons of Ready\n\n", extensionSteps()},
	} {
		page := "../../../docs/reference/" + part.page
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, found := strings.Cut(string(content), part.after)
		if !found {
			t.Fatalf("%s has no section %q", page, part.after)
		}
		next := strings.Index(rest, "\n\n")
		if next < 0 {
			next = len(rest) - 1
		}
		want := before + part.after + rows(part.steps) + rest[next+1:]
		if *update {
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, string(content)); diff != "" {
			t.Errorf("%s (-want +got, write it with -update):\n%s", page, diff)
		}
	}
}

// rows returns a table in Markdown. Reasons with the same answer share a row.
func rows(steps map[string]step) string {
	named := strings.NewReplacer("{extension}", "argocd", "{revision}", "argocd-2", "{plan}", "rebalance", "|", "\\|")
	code := func(commands ...string) string {
		var out []string
		for _, command := range commands {
			if command != "" && !slices.Contains(out, "`"+named.Replace(command)+"`") {
				out = append(out, "`"+named.Replace(command)+"`")
			}
		}
		return strings.Join(out, "<br>")
	}
	actor := strings.NewReplacer("an administrator of the cluster", "cluster administrator", "an administrator of Penstock", "Penstock administrator",
		" of the revisions", "", " of the extension", "", " of plans", "", "the author", "author", "an approver", "approver")
	shared, order := map[string][]string{}, []string{}
	for _, reason := range slices.Sorted(maps.Keys(steps)) {
		s := steps[reason]
		do, commands := s.do, []string{s.command}
		if s.command == "" {
			commands = []string{s.example}
		}
		if s.catalog != nil {
			commands = append(commands, s.catalog.command)
			if s.catalog.do != s.do {
				do += "<br>*ClusterExtension:* " + s.catalog.do
			}
		}
		answer := fmt.Sprintf("%s | %s | %s | %s", s.signal, actor.Replace(string(s.who)), do, code(commands...))
		if shared[answer] == nil {
			order = append(order, answer)
		}
		shared[answer] = append(shared[answer], reason)
	}
	out := "| reason | signal | actor | action | example |\n|---|---|---|---|---|\n"
	for _, answer := range order {
		out += "| `" + strings.Join(shared[answer], "`, `") + "` | " + answer + " |\n"
	}
	return out
}

// reasonsIn collects the constants of a package that are named Reason… or reason…, and the reasons
// that are literals in conditions.
func reasonsIn(t *testing.T, folder string, into map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", folder, err)
	}
	add := func(value ast.Expr, where string) {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				into[text] = where
			}
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				kind, _ := node.Type.(*ast.Ident)
				for i, name := range node.Names {
					result := kind != nil && kind.Name == "Result" // results of a pass are reasons of Ready
					if (result || strings.HasPrefix(strings.ToLower(name.Name), "reason")) && i < len(node.Values) {
						add(node.Values[i], file)
					}
				}
			case *ast.CompositeLit:
				if kind, ok := node.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Condition" {
					break
				}
				for _, element := range node.Elts {
					if pair, ok := element.(*ast.KeyValueExpr); ok {
						if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Reason" {
							add(pair.Value, file)
						}
					}
				}
			}
			return true
		})
	}
}
