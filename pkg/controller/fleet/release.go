package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/text"
)

// release handles a deleted set. It deletes the children, or makes them independent extensions,
// which changes nothing in the clusters. It then deletes the rollouts, and removes the finalizer.
// It returns true if the status of the set needs no write.
func (p *pass) release(ctx context.Context) (bool, error) {
	if !slices.Contains(p.object.GetFinalizers(), finalizer) {
		return true, nil
	}
	p.noteChanging(p.set.Name, 0)
	if newest := p.newest(); newest != nil && !newest.Status.Ended {
		if err := p.supersede(ctx, newest); err != nil {
			return false, err
		}
	}
	children, known := p.Extensions.Children(p.set.Name)
	if !known {
		return true, nil
	}
	if p.set.Spec.TeardownPolicy == extensionset.PolicyDelete {
		if waits, err := p.tearDown(ctx, children); err != nil || waits {
			p.queue.AddAfter(p.set.Name, lookEvery)
			return false, err
		}
	}
	for _, live := range children {
		annotations := maps.Clone(live.GetAnnotations())
		maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(extension.SetAnnotations(), key) })
		if err := p.write(ctx, p.authorOf(live, annotations), live, live.GetName(), live.Object["spec"], nil, annotations); err != nil {
			return false, err
		}
	}
	if len(children) > 0 {
		p.deleting = "Penstock makes " + text.Count(len(children), "ClusterExtension") + " independent of the set"
		p.queue.AddAfter(p.set.Name, lookEvery) // until the watch reports them
		return false, nil
	}
	for _, one := range p.rollouts {
		if err := p.deleteRollout(ctx, one); err != nil {
			return false, err
		}
	}
	changed := p.object.DeepCopy()
	changed.SetFinalizers(slices.DeleteFunc(changed.GetFinalizers(), func(one string) bool { return one == finalizer }))
	if _, err := p.Host.Resource(extensionset.Resource).Update(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("removing the finalizer from ClusterExtensionSet %s: %w", p.set.Name, err)
	}
	return true, nil
}

// tearDown deletes the children of the last wave first, and reports whether any content is left. A
// wave waits until the later waves have left every reachable cluster.
func (p *pass) tearDown(ctx context.Context, children []*unstructured.Unstructured) (bool, error) {
	left, err := p.left(ctx, children)
	if err != nil || len(left) == 0 {
		return false, err
	}
	selectors, err := p.waveSelectors()
	if err != nil {
		return false, err
	}
	waves := make([][]string, len(selectors)+1) // the last entry is for clusters without a wave
	for _, name := range slices.Sorted(maps.Keys(left)) {
		wave := len(selectors)
		if secret := p.clusters[name]; secret != nil {
			if first := slices.IndexFunc(selectors, func(one labels.Selector) bool { return one.Matches(labels.Set(secret.Labels)) }); first >= 0 {
				wave = first
			}
		}
		waves[wave] = append(waves[wave], name)
	}
	looks := p.readClusters(ctx, slices.Sorted(maps.Keys(left)), lookEvery-second)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	p.deleting = "content of the set is left in " + text.Count(len(left), "cluster")
	for _, wave := range slices.Backward(waves) {
		reached := false
		for _, name := range wave {
			if err := looks[name].err; err != nil {
				p.except(name, reasonUnreachable, fmt.Sprintf("the cluster has content of the set; to give it up, set spec.teardownPolicy of the revisions of %s to Orphan, and delete the Secret: %s", extensionset.ChildName(p.set.Name, name), err))
			} else {
				reached = true
			}
			if live := left[name]; live != nil {
				if err := p.remove(ctx, name, live); err != nil {
					return false, err
				}
			}
		}
		if reached {
			break
		}
	}
	return true, nil
}

// left returns the clusters with content of the set. Such a cluster has a child that must be
// deleted, or revisions of a deleted child. The child is nil then.
func (p *pass) left(ctx context.Context, children []*unstructured.Unstructured) (map[string]*unstructured.Unstructured, error) {
	left := map[string]*unstructured.Unstructured{}
	for _, live := range children {
		if cluster, marked := p.served(live); marked {
			left[cluster] = live
		}
	}
	names := slices.Collect(maps.Keys(p.clusters))
	for _, rollout := range p.rollouts {
		for _, cluster := range rollout.Spec.Clusters {
			names = append(names, cluster.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		live, known := p.Extensions.Find(extensionset.ChildName(p.set.Name, name))
		if !known {
			return nil, errUnknown
		}
		if live != nil {
			continue
		}
		revisions, err := p.revisionsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		// The garbage collector deletes revisions that have an owner. Revisions without an owner
		// were orphaned on purpose.
		if slices.ContainsFunc(revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool { return metav1.GetControllerOf(&one) != nil }) {
			left[name] = nil
		}
	}
	return left, nil
}
