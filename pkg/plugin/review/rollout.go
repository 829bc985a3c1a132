package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// Patience is the default time limit for following a rollout.
const Patience = 10 * time.Minute

// ErrGone reports that the followed object was deleted.
var ErrGone = errors.New("it was deleted")

// SetState changes the lifecycle state of a revision, unless it has changed since it was read.
func SetState(ctx context.Context, cluster *session.Cluster, revision *v1alpha1.ClusterExtensionRevision, state v1alpha1.LifecycleState, annotations map[string]any) (*v1alpha1.ClusterExtensionRevision, error) {
	metadata := map[string]any{"uid": revision.UID}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"lifecycleState": state}})
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s: %w", revision.Name, err)
	}
	changed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().Patch(ctx, revision.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("setting %s to %s: %w", revision.Name, state, err)
	}
	return changed, nil
}

// Follow shows the revisions of an extension until one of them is rolled out. The error is the
// reason why it stopped.
func Follow(ctx context.Context, s *session.Session, cluster *session.Cluster, on *screen.Screen, extension, name string) error {
	return progress.Following[[]*v1alpha1.ClusterExtensionRevision]{
		Each: cluster.Revisions(session.OfExtension(extension)).Follow, Screen: on, Clock: s.Clock,
		Picture: func(all []*v1alpha1.ClusterExtensionRevision) []screen.Line {
			for _, revision := range all {
				if revision.Name == name {
					return progress.RevisionLines(revision)
				}
			}
			return []screen.Line{{Text: name + ": " + ErrGone.Error()}}
		},
		Ended: func(all []*v1alpha1.ClusterExtensionRevision) (bool, error) { return RolledOut(all, name) },
	}.Run(ctx)
}

// RolledOut reports whether a revision is rolled out. The error is the reason why its rollout has
// stopped.
func RolledOut(all []*v1alpha1.ClusterExtensionRevision, name string) (bool, error) {
	for _, revision := range all {
		if revision.Name != name {
			continue
		}
		switch verdict, reason := overview.RevisionVerdict(revision); verdict {
		case overview.Done:
			return true, nil
		case overview.Stopped:
			return true, outcome.Errorf(outcome.No, "%s is not rolled out: %s\nkubectl penstock why %s says what to do", name, reason, name)
		case overview.Going:
		}
		return false, nil
	}
	return true, outcome.Errorf(outcome.No, "%s is not rolled out: %w", name, ErrGone)
}
