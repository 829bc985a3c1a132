package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
)

// writeChildren writes the content of its attempt to each cluster whose change began. The progress
// is already stored, so a crash before or after a write loses nothing.
func (p *pass) writeChildren(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout, plan *fleet.Plan, progress fleet.Progress) error {
	groups := map[string]*olmv1alpha1.RolloutGroup{}
	for i := range rollout.Spec.Groups {
		groups[rollout.Spec.Groups[i].Change] = &rollout.Spec.Groups[i]
	}
	// The author of a rollout answers only for its own content. A set that changed meanwhile writes
	// nothing of this rollout.
	if !p.isCurrent(rollout) {
		return nil
	}
	var failed []error
	for _, cluster := range plan.Clusters {
		at := progress.Clusters[cluster.Name]
		if at.State != fleet.Updating && at.State != fleet.Unknown {
			continue
		}
		group := groups[cluster.Change()]
		if group == nil || group.Extension == nil {
			return fmt.Errorf("rollout %s has no group for cluster %s", rollout.Name, cluster.Name)
		}
		if err := p.writeChild(ctx, cluster, group.Extension.Raw, attemptMark(rollout, at.Attempt)); err != nil {
			failed = append(failed, err)
			continue
		}
		if at.Attempt > 1 && at.State == fleet.Updating {
			if err := p.releaseHold(ctx, cluster.Name, at); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func (p *pass) writeChild(ctx context.Context, cluster fleet.Cluster, content []byte, mark string) error {
	name := extensionset.ChildName(p.set.Name, cluster.Name)
	live, known := p.Extensions.Find(name)
	switch {
	case !known:
		return nil
	case live != nil && live.GetAnnotations()[extension.SetAnnotation] != p.set.Name:
		return fmt.Errorf("ClusterExtension %s exists, and is no child of set %s", name, p.set.Name)
	case live != nil && live.GetAnnotations()[extension.RolloutAnnotation] == mark:
		return nil
	}
	child := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &child.Object); err != nil {
		return fmt.Errorf("reading the ClusterExtension of cluster %s: %w", cluster.Name, err)
	}
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[extension.SetAnnotation], annotations[extension.TargetAnnotation] = p.set.Name, cluster.Name
	annotations[extension.ContentAnnotation], annotations[extension.RolloutAnnotation] = cluster.After, mark
	return p.write(ctx, p.stamp, live, name, child.Object["spec"], child.GetLabels(), annotations)
}

// write creates or changes a child. The author's stamp is signed for exactly this content. A child
// without an author stays without one.
func (p *pass) write(ctx context.Context, stamp *author.Stamp, live *unstructured.Unstructured, name string, spec any, labels, annotations map[string]string) error {
	child := &unstructured.Unstructured{Object: map[string]any{}}
	generation := int64(1)
	if live != nil {
		child = live.DeepCopy()
		generation = live.GetGeneration()
		if !equality.Semantic.DeepEqual(live.Object["spec"], spec) {
			generation++
		}
		for other := range child.GetAnnotations() {
			if strings.HasPrefix(other, extension.AnnotationPrefix) {
				unstructured.RemoveNestedField(child.Object, "metadata", "annotations", other)
			}
		}
	}
	child.SetGroupVersionKind(extension.Kind)
	child.SetName(name)
	child.Object["spec"] = spec
	child.SetLabels(merged(child.GetLabels(), labels))
	child.SetAnnotations(merged(child.GetAnnotations(), annotations))
	if stamp != nil {
		if err := p.sign(stamp, child, generation); err != nil {
			return err
		}
	}
	var err error
	if live == nil {
		_, err = p.Host.Resource(extension.Resource).Create(ctx, child, metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		_, err = p.Host.Resource(extension.Resource).Update(ctx, child, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		p.queue.AddAfter(p.set.Name, conflictWait) // the watch is stale
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing ClusterExtension %s: %w", name, err)
	}
	return nil
}

func merged(old, changed map[string]string) map[string]string {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, changed)
	return all
}

func (p *pass) sign(by *author.Stamp, child *unstructured.Unstructured, generation int64) error {
	digest, err := author.ClusterExtensions().Digest(child)
	if err != nil {
		return err
	}
	stamp := &author.Stamp{
		User: by.User, UID: by.UID, Groups: by.Groups, Extra: by.Extra, Time: p.Clock.Now().UTC().Truncate(second),
		Name: child.GetName(), Extension: string(child.GetUID()), Generation: generation, Digest: digest,
	}
	if err := p.Key.Sign(stamp); err != nil {
		return fmt.Errorf("signing ClusterExtension %s: %w", child.GetName(), err)
	}
	value, err := stamp.Encode()
	if err != nil {
		return err
	}
	annotations := child.GetAnnotations()
	annotations[extension.AuthorAnnotation] = value
	child.SetAnnotations(annotations)
	return nil
}

// releaseHold releases the hold of a cluster that was rolled back before its attempt: a user asked
// for the retry.
func (p *pass) releaseHold(ctx context.Context, cluster string, at fleet.At) error {
	revisions, err := p.revisionsOf(ctx, cluster)
	if err != nil || len(revisions) == 0 {
		return err
	}
	newest := &revisions[0]
	if !maker.IsRollback(newest) || newest.Annotations[olmv1alpha1.ReleaseHoldAnnotation] != "" || !newest.CreationTimestamp.Time.Before(at.Since) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": newest.UID, "annotations": map[string]string{olmv1alpha1.ReleaseHoldAnnotation: newest.Name}}})
	if err == nil {
		_, err = p.Own.Patch(ctx, newest.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return fmt.Errorf("releasing the hold of %s: %w", newest.Name, err)
	}
	return nil
}

// releaseClusters handles clusters that the set no longer selects. With the policy Retain, it removes
// the mark of a rollout from their children. Users can then delete these children. They stay
// unchanged, and follow again when the set selects them again. With the policy Delete, it deletes
// the children of clusters that the newest rollout has recorded as leaving. The rollout asks a user
// first if many would leave together.
func (p *pass) releaseClusters(ctx context.Context) error {
	children, known := p.Extensions.Children(p.set.Name)
	if !known {
		return nil
	}
	for _, live := range children {
		cluster, marked := p.served(live)
		if !marked || p.clusters[cluster] != nil {
			continue
		}
		secret, err := p.secret(ctx, cluster)
		if err != nil || secret != nil && p.selects(secret) {
			continue // an unknown Secret is not a missing Secret
		}
		state := p.stateOf(cluster)
		switch {
		case p.serves(cluster, state, secret != nil):
		case p.set.Spec.RemovalPolicy != extensionset.PolicyDelete || secret == nil || state == fleet.Skipped:
			annotations := maps.Clone(live.GetAnnotations())
			delete(annotations, extension.RolloutAnnotation)
			err = p.write(ctx, p.authorOf(live, annotations), live, live.GetName(), live.Object["spec"], nil, annotations)
		case state == fleet.Leaving:
			err = p.remove(ctx, cluster, live)
		default:
			p.except(cluster, reasonLeaving, "no rollout is open that could ask for its removal: the next rollout does")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the state of a cluster in the newest rollout; empty if that has ended.
func (p *pass) stateOf(cluster string) fleet.State {
	active := p.newest()
	if active == nil || active.Status.Ended {
		return ""
	}
	if at, found := extensionrollout.Progress(&active.Status).Clusters[cluster]; found {
		return at.State
	}
	return fleet.Pending
}

// serves reports whether the newest rollout still handles a cluster in a state. If it does not, a
// missing Secret counts as deleted.
func (p *pass) serves(cluster string, state fleet.State, hasSecret bool) bool {
	switch state {
	case fleet.Pending:
		_, planned := p.placeIn(p.newest(), cluster)
		return hasSecret || planned
	case "", fleet.Leaving, fleet.Skipped:
		return false
	case fleet.Present, fleet.Succeeded, fleet.Failed, fleet.RolledBack:
		return hasSecret || !p.newest().Status.Completed
	}
	return true
}

// remove deletes a child if the author of the set may delete it.
func (p *pass) remove(ctx context.Context, cluster string, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil || p.stamp == nil {
		return nil // p.stopped explains the missing author
	}
	name, uid, version := live.GetName(), live.GetUID(), live.GetResourceVersion()
	may, err := p.Rights.May(ctx, p.stamp.Info(), authz.On(extension.Resource, "delete", "", name))
	if err != nil {
		return fmt.Errorf("finding out whether %s may delete ClusterExtension %s: %w", p.stamp.User, name, err)
	}
	if !may {
		p.queue.AddAfter(p.set.Name, lookAgain)
		p.except(cluster, reasonDenied, fmt.Sprintf("%s, who wrote the set, cannot delete ClusterExtension %s", p.stamp.User, name))
		return nil
	}
	err = p.Host.Resource(extension.Resource).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	switch {
	case apierrors.IsConflict(err):
		p.queue.AddAfter(p.set.Name, conflictWait) // the watch is stale
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting ClusterExtension %s: %w", name, err)
	}
	return nil
}

// authorOf returns the author of a child. It returns nil if the child's stamp is invalid, and
// removes that stamp from the annotations: the author of the set is not responsible for such a
// child.
func (p *pass) authorOf(child *unstructured.Unstructured, annotations map[string]string) *author.Stamp {
	stamp, err := author.ClusterExtensions().Verify(p.Key, child)
	if err != nil {
		delete(annotations, extension.AuthorAnnotation)
		return nil
	}
	return stamp
}
