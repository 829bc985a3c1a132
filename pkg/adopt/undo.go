package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// Return lists the effects of an undo.
type Return struct {
	Request
	// Revisions are deleted, oldest first. Objects go back to Helm unchanged.
	Revisions []string
	Objects   []manifest.ID

	refs     []manifest.Ref
	release  release
	newOwner targetclient.NewOwner
	// owner is the former owner of the objects; nil for none.
	owner *metav1.OwnerReference
}

// PlanUndo plans to give an extension back to Helm. It only reads. It fails when the cluster has
// content that Helm did not install.
func (a *Adopter) PlanUndo(ctx context.Context, request Request, manager string) (*Return, error) {
	found, err := a.read(ctx, request)
	if err != nil {
		return nil, err
	}
	revisions, err := a.list(ctx, request.Extension)
	if err != nil {
		return nil, err
	}
	known := adopted(revisions)
	if len(revisions) == 0 && len(found.marked) == 0 || len(revisions) > 0 && (known.Name != request.Release || known.Namespace != request.Namespace) {
		return nil, fmt.Errorf("the extension %s was not adopted from the Helm release %s", request.Extension, request)
	}
	slices.SortFunc(revisions, func(a, b v1alpha1.ClusterExtensionRevision) int { return cmp.Compare(a.Spec.Revision, b.Spec.Revision) })
	if err := mayReturn(revisions, found, known); err != nil {
		return nil, fmt.Errorf("giving the extension %s back to Helm: %w", request.Extension, err)
	}
	back := &Return{Request: request, release: found, newOwner: targetclient.NewOwner{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}
	if found.Deployed.ApplyMethod == "ssa" {
		back.newOwner.Operation = metav1.ManagedFieldsOperationApply
	}
	listed := map[manifest.ID]bool{}
	for i := range revisions {
		one := &revisions[i]
		back.Revisions = append(back.Revisions, one.Name)
		if one.Spec.LifecycleState == v1alpha1.LifecycleStateArchived {
			continue
		}
		for _, ref := range references.Of(one) {
			if !listed[ref.ID] {
				listed[ref.ID] = true
				back.refs, back.Objects = append(back.refs, ref), append(back.Objects, ref.ID)
			}
		}
	}
	return back, nil
}

// mayReturn returns nil when the extension has the content of Helm's deployed revision, or when Helm
// has made a newer revision since.
func mayReturn(revisions []v1alpha1.ClusterExtensionRevision, found release, known helmrelease.Release) error {
	if found.Highest > known.Revision {
		return nil
	}
	for i := range revisions {
		one := &revisions[i]
		if one.Spec.LifecycleState == v1alpha1.LifecycleStateArchived || !one.DeletionTimestamp.IsZero() {
			continue
		}
		of, err := strconv.Atoi(one.Annotations[v1alpha1.HelmRevisionAnnotation])
		if err == nil && of == found.Deployed.Version {
			continue
		}
		return fmt.Errorf("%s has other content than revision %d, which Helm considers deployed: first go back to that content with kubectl penstock rollback, or make a newer revision with helm rollback",
			one.Name, found.Deployed.Version)
	}
	return nil
}

// Undo gives an extension back to Helm. It can be repeated after an interruption:
//
//  1. The active revisions are paused, so that Penstock repairs nothing meanwhile.
//  2. Each object loses the marks of the extension, and Helm's manager gets its fields.
//  3. The revisions are deleted, oldest first, without their objects.
//  4. The history is deleted, if the caller may, so that the release can be adopted again.
//  5. The Secrets of the release lose their annotation.
//
// forgotten is false when the history still exists.
func (a *Adopter) Undo(ctx context.Context, back *Return) (forgotten bool, err error) {
	if err := a.pause(ctx, back.Extension); err != nil {
		return false, err
	}
	if err := eachRef(ctx, back.refs, func(ctx context.Context, ref manifest.Ref) error { return a.returnObject(ctx, back, ref) }); err != nil {
		return false, err
	}
	if err := a.remove(ctx, back); err != nil {
		return false, err
	}
	err = a.revisions.OlmV1alpha1().RESTClient().Delete().Resource("revisionhistories").Name(back.Extension).Do(ctx).Error()
	forgotten = !apierrors.IsForbidden(err)
	if err = client.IgnoreNotFound(err); err != nil && forgotten {
		return false, fmt.Errorf("deleting the history of extension %s: %w", back.Extension, err)
	}
	// The annotation is removed last. A repeated command sees by it that the undo is unfinished.
	for i := range back.release.marked {
		if err := a.markSecret(ctx, &back.release.marked[i], ""); err != nil {
			return false, err
		}
	}
	return forgotten, nil
}

// pause pauses the active revisions, and waits until the controller has observed the pause.
func (a *Adopter) pause(ctx context.Context, extension string) error {
	revisions, err := a.list(ctx, extension)
	if err != nil {
		return err
	}
	for i := range revisions {
		one := &revisions[i]
		if one.Spec.LifecycleState != v1alpha1.LifecycleStateActive || !one.DeletionTimestamp.IsZero() {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": one.UID}, "spec": map[string]any{"lifecycleState": v1alpha1.LifecycleStatePaused}})
		if err != nil {
			return err
		}
		_, err = a.revisions.OlmV1alpha1().ClusterExtensionRevisions().Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("pausing %s: %w", one.Name, err)
		}
	}
	err = a.until(ctx, extension, func(all []*v1alpha1.ClusterExtensionRevision) bool {
		return !slices.ContainsFunc(all, func(one *v1alpha1.ClusterExtensionRevision) bool {
			return one.Spec.LifecycleState == v1alpha1.LifecycleStatePaused && one.Status.ObservedGeneration < one.Generation
		})
	})
	if err != nil {
		return fmt.Errorf("waiting until the revisions of extension %s are paused: %w", extension, err)
	}
	return nil
}

// until watches the revisions of an extension until done returns true.
func (a *Adopter) until(ctx context.Context, extension string, done func([]*v1alpha1.ClusterExtensionRevision) bool) error {
	source := follow.Revisions(a.revisions, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + extension})
	return source.Each(ctx, func(all []*v1alpha1.ClusterExtensionRevision) (bool, error) { return done(all), nil })
}

// returnObject gives one object back, if the extension still owns it.
func (a *Adopter) returnObject(ctx context.Context, back *Return, ref manifest.Ref) error {
	manager := managerOf(back.Extension)
	marks := targetclient.Marks{
		FieldManager: manager, Labels: []string{v1alpha1.ChainLabel}, Annotations: []string{v1alpha1.AppliedAnnotation, helm.TeardownAnnotation},
	}
	live, err := a.target.ReadMetadata(ctx, ref)
	switch {
	case isAbsent(err):
		return nil
	case err != nil:
		return err
	}
	kept := slices.ContainsFunc(live.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager })
	ours := live.Labels[v1alpha1.ChainLabel] == back.Extension || kept
	// For an object without Penstock's marks and without a controller, only the owner is restored:
	// the adoption was interrupted before Penstock took the object over.
	if ours || live.Labels[v1alpha1.ChainLabel] == "" && metav1.GetControllerOf(live) == nil {
		if live, err = a.restoreOwner(ctx, back, ref, live); err != nil {
			return err
		}
	}
	if !ours {
		return nil
	}
	return a.target.HandOver(ctx, ref, targetclient.Precondition{UID: live.UID, ResourceVersion: live.ResourceVersion}, marks, back.newOwner)
}

// eachRef calls do for each object, some in parallel. It calls do again for an object that another
// client writes meanwhile.
func eachRef(ctx context.Context, refs []manifest.Ref, do func(context.Context, manifest.Ref) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookAtOnce)
	for _, ref := range refs {
		group.Go(func() error {
			var err error
			for range looks {
				if err = do(ctx, ref); !targetclient.IsOvertaken(err) {
					break
				}
			}
			return err
		})
	}
	return group.Wait()
}

// isAbsent reports whether the object or its kind does not exist.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// remove deletes the revisions, oldest first, and waits until they are deleted. It does not set the
// orphan propagation policy. Only the garbage collector removes the finalizer of that policy. A
// CustomResourceDefinition can have the same name as Penstock's API, as that of OLM's revisions
// had; then the garbage collector sees only the objects of that definition.
func (a *Adopter) remove(ctx context.Context, back *Return) error {
	background := metav1.DeletePropagationBackground
	leave, err := json.Marshal(map[string]any{"spec": map[string]any{"teardownPolicy": v1alpha1.TeardownPolicyOrphan}})
	if err != nil {
		return err
	}
	for _, name := range back.Revisions {
		_, err := a.revisions.OlmV1alpha1().ClusterExtensionRevisions().Patch(ctx, name, types.MergePatchType, leave, metav1.PatchOptions{})
		if err == nil {
			err = a.revisions.OlmV1alpha1().ClusterExtensionRevisions().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("deleting %s without its objects: %w", name, err)
		}
	}
	err = a.until(ctx, back.Extension, func(all []*v1alpha1.ClusterExtensionRevision) bool { return len(all) == 0 })
	if err != nil {
		return fmt.Errorf("waiting until the revisions of extension %s are gone: %w", back.Extension, err)
	}
	return nil
}

// ErrNotReady reports that a revision did not succeed within the timeout.
var ErrNotReady = errors.New("it has not succeeded in time")

// Await waits until a revision succeeds. If a revision needs a user, Await returns an error with
// the reason.
func (a *Adopter) Await(ctx context.Context, name string) error {
	extension, _, _ := olm.ChainOf(name)
	message := "the controller has not looked at it yet"
	stalled := ""
	err := a.until(ctx, extension, func(all []*v1alpha1.ClusterExtensionRevision) bool {
		at := slices.IndexFunc(all, func(one *v1alpha1.ClusterExtensionRevision) bool { return one.Name == name })
		if at < 0 {
			return false
		}
		conditions := all[at].Status.Conditions
		if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
			message = ready.Message
		}
		if stall := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled); stall != nil && stall.Status == metav1.ConditionTrue {
			stalled = stall.Message
			return true
		}
		return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionSucceeded)
	})
	switch {
	case stalled != "":
		return fmt.Errorf("%s waits for a person: %s", name, stalled)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %s", name, ErrNotReady, message)
	case err != nil:
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
	return nil
}
