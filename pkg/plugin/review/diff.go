// Package review has the shared code of commands that show the changes of a revision. They ask the
// user, resume the revision and follow it.
package review

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// Get reads a diff by name, A..B.
func Get(ctx context.Context, cluster *session.Cluster, name string, query map[string]string) (*v1alpha1.RevisionDiff, error) {
	diff := &v1alpha1.RevisionDiff{}
	request := cluster.OlmV1alpha1().RESTClient().Get().Resource("revisiondiffs").Name(name)
	for key, value := range query {
		request.Param(key, value)
	}
	if err := request.Do(ctx).Into(diff); err != nil {
		return nil, fmt.Errorf("comparing %s: %w", name, err)
	}
	return diff, nil
}

// GetOwn reads the changes of a revision against the previous one.
func GetOwn(ctx context.Context, cluster *session.Cluster, name string, query map[string]string) (*v1alpha1.RevisionDiff, error) {
	if len(query) == 0 {
		diff, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().GetDiff(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("comparing %s with the revision before it: %w", name, err)
		}
		return diff, nil
	}
	diff := &v1alpha1.RevisionDiff{}
	request := cluster.OlmV1alpha1().RESTClient().Get().Resource("clusterextensionrevisions").Name(name).SubResource("diff")
	for key, value := range query {
		request.Param(key, value)
	}
	if err := request.Do(ctx).Into(diff); err != nil {
		return nil, fmt.Errorf("comparing %s with the revision before it: %w", name, err)
	}
	return diff, nil
}

// Proposal compares a paused revision with the newest active revision before it. active is false if
// there is none; then everything is added.
func Proposal(ctx context.Context, cluster *session.Cluster, extension string, revision *v1alpha1.ClusterExtensionRevision) (diff *v1alpha1.RevisionDiff, active bool, err error) {
	found, err := cluster.Find(ctx, revision.Name)
	if err != nil {
		return nil, false, err
	}
	if earlier := found.Before(revision); earlier != nil {
		diff, err := Get(ctx, cluster, earlier.Name+".."+revision.Name, nil)
		return diff, true, err
	}
	diff, err = GetOwn(ctx, cluster, olm.RevisionName(extension, revision.Spec.Revision), nil)
	return diff, false, err
}

// Question returns the question whether to make a change, such as "Roll out argocd-2". It states
// the number of deleted objects, and warns of an incomplete diff.
func Question(asked string, diff *v1alpha1.RevisionDiff) string {
	if n := diff.Summary.Removed; n > 0 {
		asked += fmt.Sprintf(", and delete the %d removed", n)
	}
	if diff.Truncated != nil || diff.Summary.Withheld > 0 {
		return "Warning: not all that changes is shown above. " + asked + " all the same?"
	}
	return asked + "?"
}

// Answers returns the annotations for a revision whose diff the user has read and accepted.
func Answers(diff *v1alpha1.RevisionDiff) map[string]any {
	annotations := map[string]any{}
	if digest := diff.Summary.RemovedDigest; digest != "" {
		annotations[v1alpha1.AcknowledgeDeletionAnnotation] = digest
	}
	if digest := diff.Summary.ApprovalDigest; digest != "" {
		annotations[v1alpha1.ApproveAnnotation] = digest
	}
	return annotations
}

// Verdict returns nil if a diff shows no change. It returns outcome.No for changes, and
// outcome.Unknown if parts of the diff are withheld or cut.
func Verdict(diff *v1alpha1.RevisionDiff) error {
	switch {
	case len(diff.Changes) > 0 || diff.Summary.Added+diff.Summary.Changed+diff.Summary.Removed > 0:
		return outcome.Quiet(outcome.No)
	case diff.Summary.Withheld > 0 || diff.Truncated != nil:
		return outcome.Errorf(outcome.Unknown, "nothing changes in what is shown; whether anything else changes is unknown")
	default:
		return nil
	}
}
