package chartkind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/source"
	chartsource "github.com/penstock-project/penstock/pkg/source/chart"
)

// made is what came of a chart: objects, or why there are none.
type made struct {
	rendered source.Rendered
	stopped  *halt
}

// render makes the objects, beside the passes: the pass ends, and another one comes when there is a
// result. Custom resources of a namespace share what there is with those of others.
func (v *visit) render(ctx context.Context) (source.Rendered, *halt) {
	generated, err := v.generated(ctx)
	if err != nil {
		return source.Rendered{}, retry(fmt.Errorf("reading the generated Secrets of %s: %w", v.extension, err))
	}
	// What was generated comes from the newest revision that has it.
	digest := v.wanted
	if newest := v.newest(); newest != nil {
		digest += " " + newest.Name
	}
	tenant := "chartkind/" + v.name + "/" + v.object.GetNamespace()
	result, ready := v.jobs.Do(ctx, v.key, digest, func(ctx context.Context) (out made) {
		if err := v.Pool.Render(ctx, tenant, func() { out.rendered, out.stopped = v.renderNow(ctx, generated) }); err != nil {
			out.stopped = &halt{quiet: true}
		}
		return out
	}, func() { v.passes.Add(v.key) })
	if !ready {
		return source.Rendered{}, &halt{quiet: true, rendering: true}
	}
	return result.rendered, result.stopped
}

// renderNow runs the process that renders.
func (v *visit) renderNow(ctx context.Context, generated []chartsource.GeneratedSecret) (source.Rendered, *halt) {
	cluster, err := v.Capabilities.Capabilities(ctx, "")
	if err != nil {
		return source.Rendered{}, retry(fmt.Errorf("reading what the cluster serves, for the chart of %s: %w", v.extension, err))
	}
	v.countRender()
	klog.FromContext(ctx).Info("Rendering a chart", "extension", v.extension, "resource", v.String(), "generation", v.object.GetGeneration())
	renderer := chartsource.Renderer{Options: chartsource.Options{
		Release: v.object.GetName(), Namespace: v.namespaceOf(v.object), Values: v.values, Integers: true, Generated: generated, Cluster: cluster, Program: v.Program,
	}}
	rendered, err := renderer.RenderArchive(ctx, v.chart.archive)
	var unknown *chartsource.UnknownError
	switch {
	case ctx.Err() != nil:
		return rendered, &halt{quiet: true}
	case errors.As(err, &unknown):
		return rendered, retry(fmt.Errorf("rendering the chart: %w", err))
	case err != nil:
		return rendered, irreconcilable("the chart cannot be rendered: %s", err)
	case source.Count(rendered.Phases) > olmv1alpha1.MaxObjects:
		return rendered, irreconcilable("the chart renders %d objects, and a revision can have at most %d", source.Count(rendered.Phases), olmv1alpha1.MaxObjects)
	}
	return rendered, nil
}

// generated are the Secrets that the chart generates, as the newest revision that has them has
// them: what was generated once stays.
func (v *visit) generated(ctx context.Context) ([]chartsource.GeneratedSecret, error) {
	if len(v.spec.GeneratedSecrets) == 0 {
		return nil, nil
	}
	namespace := v.namespaceOf(v.object)
	out := make([]chartsource.GeneratedSecret, len(v.spec.GeneratedSecrets))
	for i, name := range v.spec.GeneratedSecrets {
		out[i] = chartsource.GeneratedSecret{Namespace: namespace, Name: name}
		wanted := manifest.ID{Kind: "Secret", Namespace: namespace, Name: name}
		for j := range v.revisions {
			one := &v.revisions[j]
			if !slices.ContainsFunc(references.Of(one), func(ref manifest.Ref) bool { return ref.ID == wanted }) {
				continue
			}
			objects, err := v.Packs.Objects(ctx, revision.PackRoot(one))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.Name, err)
			}
			if found := slices.IndexFunc(objects, func(object manifest.Object) bool { return object.ID == wanted }); found >= 0 {
				if err := json.Unmarshal(objects[found].JSON, &out[i].Previous); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", one.Name, wanted, err)
				}
			}
			break
		}
	}
	return out, nil
}

// create makes the next revision:
//
//  1. The revisions are as the cache has them: the cache may be behind.
//  2. A proposal that nobody has approved makes room.
//  3. The revision, in the name of the ServiceAccount; Paused when somebody has to approve it.
func (v *visit) create(ctx context.Context, made source.Rendered) *halt {
	if stopped := v.isCurrent(ctx); stopped != nil {
		return stopped
	}
	if stopped := v.withdraw(ctx); stopped.again || stopped.irreconcilable != "" {
		return stopped
	}
	head, _, err := v.Heads.Get(ctx, v.extension)
	if err != nil {
		return retry(fmt.Errorf("reading which number the next revision of %s has: %w", v.extension, err))
	}
	writer, err := v.As(v.as())
	if err != nil {
		return retry(err)
	}
	next := v.next(head.Next(), made)
	if _, err := writer.Create(ctx, next, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return v.refused("creating revision "+next.Name, err)
	}
	if next.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused {
		return waiting(next.Name)
	}
	return &halt{quiet: true} // the watch brings it
}

// isCurrent is whether the cache has all revisions that there are.
func (v *visit) isCurrent(ctx context.Context) *halt {
	now, err := bychain.List(ctx, v.Live, v.extension)
	if err != nil {
		return retry(fmt.Errorf("reading the revisions of %s: %w", v.extension, err))
	}
	if !slices.EqualFunc(now, v.revisions, func(a, b olmv1alpha1.ClusterExtensionRevision) bool {
		return a.UID == b.UID && a.Generation == b.Generation
	}) {
		return &halt{quiet: true, again: true}
	}
	return nil
}

// withdraw deletes a proposal that is not wanted any more, as it was read: nobody has let it
// go on, so nothing of it is in the cluster.
func (v *visit) withdraw(ctx context.Context) *halt {
	proposed := v.proposal()
	if proposed == nil {
		return &halt{}
	}
	writer, err := v.As(v.as())
	if err != nil {
		return retry(err)
	}
	err = writer.Delete(ctx, proposed.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &proposed.UID, ResourceVersion: &proposed.ResourceVersion}})
	switch {
	case apierrors.IsConflict(err):
		return &halt{quiet: true, again: true} // somebody may have approved it
	case err != nil && !apierrors.IsNotFound(err):
		return v.refused("withdrawing the proposal "+proposed.Name, err)
	}
	return &halt{}
}

// next is the next revision.
func (v *visit) next(number int64, made source.Rendered) *olmv1alpha1.ClusterExtensionRevision {
	out := &olmv1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: olm.RevisionName(v.extension, number),
			Annotations: map[string]string{
				chartkind.ResourceAnnotation: v.name + "/" + v.key, chartkind.UIDAnnotation: string(v.object.GetUID()),
				chartkind.GenerationAnnotation: strconv.FormatInt(v.object.GetGeneration(), 10), chartkind.MadeOfAnnotation: v.wanted,
				olmv1alpha1.VersionAnnotation: made.Version, olmv1alpha1.PackageAnnotation: made.Package, olmv1alpha1.ReferenceAnnotation: v.chart.pinned,
				olmv1alpha1.ChangeCauseAnnotation: fmt.Sprintf("%s of generation %d, with chart %s %s", v, v.object.GetGeneration(), made.Package, made.Version),
			},
		},
		Spec: olmv1alpha1.ClusterExtensionRevisionSpec{
			LifecycleState: olmv1alpha1.LifecycleStateActive, Revision: number, ProgressDeadlineMinutes: v.spec.ProgressDeadlineMinutes,
		},
	}
	if notes := report.Clip(string(bytes.TrimSpace([]byte(made.Notes)))); notes != "" {
		out.Annotations[chartkind.NotesAnnotation] = notes
	}
	for _, phase := range made.Phases {
		rendered := olmv1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			rendered.Objects = append(rendered.Objects, olmv1alpha1.RevisionObject{Object: &olmv1alpha1.Manifest{Raw: object.JSON}})
		}
		out.Spec.Phases = append(out.Spec.Phases, rendered)
	}
	if v.spec.UpgradeApproval == chartkind.ApprovalManual && v.newest() != nil {
		out.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
		out.Annotations[olmv1alpha1.LifecycleReasonAnnotation] = fmt.Sprintf("spec.upgradeApproval of ChartKind %s is %s", v.name, chartkind.ApprovalManual)
	}
	return out
}

// refused says why a revision was not written. What a ServiceAccount may do changes without a
// word to us, and so do quotas and policies: those are tried again.
func (v *visit) refused(what string, err error) *halt {
	err = fmt.Errorf("%s in the name of ServiceAccount %s: %w", what, v.spec.ServiceAccount, err)
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return &halt{quiet: true, again: true}
	case apierrors.IsForbidden(err):
		return &halt{irreconcilable: err.Error(), again: true}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &halt{irreconcilable: err.Error()}
	}
	return retry(err)
}

// leave deletes the revisions of a custom resource that is being deleted, and lets it go when
// there is none left.
func (v *visit) leave(ctx context.Context) error {
	if !slices.Contains(v.object.GetFinalizers(), chartkind.Finalizer) {
		return nil
	}
	left, err := v.deleteRevisions(ctx)
	var unreadable *bychain.UnreadableError
	switch {
	case errors.As(err, &unreadable):
		return nil // its change is an event
	case err != nil:
		return err
	case left > 0:
		return nil // their going is an event
	}
	err = applyFinalizers(ctx, v.account, v.spec.Resource, v.object, nil)
	if err == nil || apierrors.IsNotFound(err) {
		v.again() // it may have gone because its definition does
		return nil
	}
	return err
}

// deleteRevisions deletes those that are ours, as whichever extension, and returns how many there
// still are. What the name is made of may be another by now, or gone.
func (v *visit) deleteRevisions(ctx context.Context) (left int, err error) {
	now, err := v.mapping.Extension(ctx, v.object)
	if err != nil {
		now = ""
	}
	extensions, err := v.elsewhere(ctx, v.object, now)
	if err != nil {
		return 0, err
	}
	if now != "" {
		extensions = append(extensions, now)
	}
	for _, v.extension = range extensions {
		count, err := v.deleteChain(ctx)
		if left += count; err != nil {
			return left, err
		}
	}
	return left, nil
}

// deleteChain deletes the revisions of one extension that are ours.
func (v *visit) deleteChain(ctx context.Context) (left int, err error) {
	revisions, err := bychain.List(ctx, v.Live, v.extension)
	if err != nil {
		return 0, err
	}
	writer, err := v.As(v.as())
	if err != nil {
		return 0, err
	}
	v.remember()
	ours := v.isOf(revisions, v.object)
	for i := range revisions {
		one := &revisions[i]
		if !v.isOurs(one, v.object) && (!ours || !isRollback(one)) {
			continue
		}
		left++
		if one.DeletionTimestamp != nil {
			continue
		}
		err := writer.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &one.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return left, fmt.Errorf("deleting revision %s in the name of ServiceAccount %s: %w", one.Name, v.spec.ServiceAccount, err)
		}
	}
	return left, nil
}
