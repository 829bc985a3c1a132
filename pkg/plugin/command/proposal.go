package command

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// nextNumber returns the number after the highest that the extension ever had.
func nextNumber(ctx context.Context, cluster *session.Cluster, extension string) (int64, error) {
	history, err := cluster.OlmV1alpha1().RevisionHistories().Get(ctx, extension, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the history of %s: %w", extension, err)
	}
	number := int64(0)
	for i := range history.Revisions {
		number = max(number, history.Revisions[i].Revision)
	}
	return number + 1, nil
}

// isUnchanged reports whether a proposal equals the rolled out content. If so, it prints that.
func (d *deployment) isUnchanged(ctx context.Context, diff *v1alpha1.RevisionDiff) (bool, error) {
	if diff.From == "" || review.Verdict(diff) != nil {
		return false, nil
	}
	current, err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, diff.From, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", diff.From, err)
	}
	if current.Spec.LifecycleState != v1alpha1.LifecycleStateActive || current.DeletionTimestamp != nil {
		return false, nil // the rollout creates objects again that are not rolled out any more
	}
	switch {
	case d.output != "" && (d.dryRun || d.savePlanFile != ""):
		return true, changes.Write(d.Session, d.output, diff, d.view(true))
	case d.output != "":
		return true, d.PrintObject(d.output, current)
	}
	d.Err.Para(screen.Dim, screen.Waiting, "nothing changes: "+current.Name+" has that content already")
	return true, nil
}

// sameChanges reports whether the diffs before and after the revision was stored show the same
// changes.
func sameChanges(shown, stored *v1alpha1.RevisionDiff) bool {
	count := func(summary v1alpha1.DiffSummary) v1alpha1.DiffSummary {
		summary.RemovedDigest, summary.ApprovalDigest = "", ""
		return summary
	}
	return shown.From == stored.From && shown.To == stored.To && count(shown.Summary) == count(stored.Summary) &&
		equality.Semantic.DeepEqual(shown.Changes, stored.Changes)
}

// view returns the options for showing the diff of a revision that is not stored.
func (d *deployment) view(lines bool) changes.View {
	return changes.View{Lines: lines && !d.stat, Unfold: d.unfold, Unstored: true}
}

func (d *deployment) show(ctx context.Context, rendered *v1alpha1.ClusterExtensionRevision, diff *v1alpha1.RevisionDiff) error {
	if diff.From != "" && d.version != "" {
		from, err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, diff.From, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading %s: %w", diff.From, err)
		}
		review.SayDowngrade(d.Err, from, rendered)
	}
	on := d.Out
	if d.output != "" {
		if d.dryRun || d.savePlanFile != "" {
			return changes.Write(d.Session, d.output, diff, d.view(true))
		}
		on = d.Err
	}
	// The diff of a first installation consists of the manifests, which the user has.
	changes.Print(on, diff, d.view(diff.From != ""))
	return nil
}
