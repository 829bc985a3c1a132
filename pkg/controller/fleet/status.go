package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	second = time.Second
	// lookAgain is the delay before a cluster that the set could not serve is checked again.
	lookAgain = time.Minute
	// knownFor is how long a known uid of a cluster stays valid before a rollout begins.
	knownFor = time.Hour
	// longestRefusal bounds the text about a refused write in a condition, in bytes.
	longestRefusal = 1024
)

func same(a, b *olmv1alpha1.ClusterExtensionRolloutStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// writeStatus writes the status of a set if it changed, and deletes old rollouts.
func (p *pass) writeStatus(ctx context.Context) error {
	status := extensionset.Status{ObservedGeneration: p.object.GetGeneration(), Clusters: int32(len(p.clusters)), Conditions: slices.Clone(p.set.Status.Conditions)}
	for _, name := range slices.Sorted(maps.Keys(p.exceptions)) {
		if len(status.Exceptions) < extensionset.MaxExceptions {
			status.Exceptions = append(status.Exceptions, p.exceptions[name])
		}
	}
	excepted := maps.Clone(p.exceptions)
	maps.DeleteFunc(excepted, func(_ string, one extensionset.Exception) bool {
		return one.Reason == reasonNotSelected || one.Reason == reasonLeaving // the set need not serve this cluster
	})
	phase, message := "Completed", "every cluster has the newest content"
	if newest := p.newest(); newest != nil && !newest.Status.Ended {
		status.Rollout, status.Phase = newest.Name, newest.Status.Phase
		phase, message = newest.Status.Phase, newest.Status.Message
	}
	updated, err := p.updated(ctx)
	if err != nil {
		return err
	}
	status.Updated = int32(updated)
	stalled := phase == string(fleet.PhaseHalted)
	switch {
	case p.stopped != "":
		phase, message, stalled = p.stopped, p.stoppedMessage, true
	case p.refused != nil:
		phase, message, stalled = "WriteRefused", text.Clip(p.refused.Error(), longestRefusal), true
	case p.deleting != "":
		phase, message, status.Phase = "Deleting", p.deleting, "Deleting"
		if len(excepted) > 0 {
			message, stalled = fmt.Sprintf("%s; %d cannot continue: see status.exceptions", message, len(excepted)), true
		}
	case len(excepted) > 0 && (phase == "Completed" || phase == ""):
		phase, message, stalled = "ClustersExcepted", fmt.Sprintf("%d of %d clusters cannot be served: see status.exceptions", len(excepted), len(p.clusters)), true
	}
	if phase == "" {
		phase = "Pending"
	}
	extensionrollout.SetConditions(&status.Conditions, map[string]bool{
		"Ready":       phase == "Completed" && updated == len(p.clusters),
		"Progressing": !stalled && phase != "Completed" && phase != string(fleet.ReviewRequired),
		"Stalled":     stalled,
	}, metav1.Condition{Reason: phase, Message: message, ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(p.Clock.Now().UTC().Truncate(second))})
	if err := p.prune(ctx); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(status, p.set.Status) {
		return nil
	}
	changed, err := extensionset.WithStatus(p.object, status)
	if err != nil {
		return err
	}
	_, err = p.Host.Resource(extensionset.Resource).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of ClusterExtensionSet %s: %w", p.set.Name, err)
	}
	return nil
}

// updated counts the clusters that have their last approved content.
func (p *pass) updated(ctx context.Context) (int, error) {
	updated := 0
	for cluster := range p.clusters {
		name := extensionset.ChildName(p.set.Name, cluster)
		child, known := p.Extensions.Find(name)
		if !known || child == nil {
			continue
		}
		revisions, err := p.revisionsOf(ctx, cluster)
		if err != nil {
			return 0, err
		}
		if content := contentBefore(revisions); content != "" && content == child.GetAnnotations()[extension.ContentAnnotation] {
			updated++
		}
	}
	return updated, nil
}

// prune deletes the oldest ended rollouts. It keeps the rollouts within the history limit. It also
// keeps rollouts that record further requesters of the newest content, because these users cannot
// approve it.
func (p *pass) prune(ctx context.Context) error {
	limit := extensionset.DefaultHistoryLimit
	if p.set.Spec.RolloutHistoryLimit != nil {
		limit = int(*p.set.Spec.RolloutHistoryLimit)
	}
	for i := 0; i < len(p.rollouts)-limit-1; i++ {
		one, newest := p.rollouts[i], p.newest()
		if !one.Status.Ended || one.Spec.Set.Digest == newest.Spec.Set.Digest && one.Spec.RequestedBy != newest.Spec.RequestedBy {
			continue
		}
		if err := p.deleteRollout(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) deleteRollout(ctx context.Context, one *olmv1alpha1.ClusterExtensionRollout) error {
	uid := one.UID
	if err := p.Rollouts.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting rollout %s, which nobody needs: %w", one.Name, err)
	}
	return nil
}

// Newest returns the newest rollout of each set, unless it has ended.
func (c *Controller) Newest() []*olmv1alpha1.ClusterExtensionRollout {
	watches := c.watches()
	if watches == nil {
		return nil
	}
	return newestOf(objectwatch.All[*olmv1alpha1.ClusterExtensionRollout](watches.rollouts))
}

// newestOf returns the newest rollout of each set, unless it has ended.
func newestOf(all []*olmv1alpha1.ClusterExtensionRollout) []*olmv1alpha1.ClusterExtensionRollout {
	bySet := map[string]*olmv1alpha1.ClusterExtensionRollout{}
	for _, one := range all {
		if before := bySet[one.Spec.Set.Name]; before == nil || number(before.Name) < number(one.Name) {
			bySet[one.Spec.Set.Name] = one
		}
	}
	maps.DeleteFunc(bySet, func(_ string, one *olmv1alpha1.ClusterExtensionRollout) bool { return one.Status.Ended })
	return slices.Collect(maps.Values(bySet))
}
