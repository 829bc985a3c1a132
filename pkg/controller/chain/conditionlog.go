package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// revisionKey is the key of every log line about a revision. The lines with one name are the
// history of that revision.
const revisionKey = "revision"

// logConditions logs the changed conditions of a revision. It ignores messages in which only a
// count changed (3 of 5, 4 of 5).
func logConditions(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, next []metav1.Condition) {
	log := klog.FromContext(ctx)
	for _, now := range next {
		before := meta.FindStatusCondition(revision.Status.Conditions, now.Type)
		if before != nil && before.Status == now.Status && before.Reason == now.Reason {
			continue
		}
		log.Info("A condition of a revision changed", revisionKey, revision.Name,
			"condition", now.Type, "status", now.Status, "reason", now.Reason, "message", now.Message)
	}
}
