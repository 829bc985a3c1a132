package extension

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/right"
	"github.com/penstock-project/penstock/pkg/text"
)

// Labels of revisions by which OLM's clients find those of an extension.
const (
	ownerKindLabel = "olm.operatorframework.io/owner-kind"
	ownerNameLabel = "olm.operatorframework.io/owner-name"
)

// eventRenderWarning is the reason of an event about the content of a bundle or chart.
const eventRenderWarning = "RenderWarning"

// longestNote is what the API takes for the note of an event, in bytes.
const longestNote = 1024

// create makes the next revision:
//
//  1. The revisions are as the cache has them: the cache may be behind.
//  2. The revision, in the name of somebody, or Paused in our own.
//  3. Proposals that nobody has approved make room for it, now that it is there: one that is
//     refused takes nothing away.
func (v *visit) create(ctx context.Context, name name, wish *wish, made *content) *halt {
	if stopped := v.isCurrent(ctx); stopped != nil {
		return stopped
	}
	head, _, err := v.Heads.Get(ctx, v.extension.Name)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("reading which number the next revision of %s has: %w", v.extension.Name, err))
	}
	writer := v.Own
	if name.as != nil {
		if writer, err = v.As(name.as); err != nil {
			return retry(status.Failed, fmt.Errorf("making a client in the name of %s: %w", name.as.GetName(), err))
		}
	}
	revision := v.next(head.Next(), name, wish, made)
	_, err = writer.Create(ctx, revision, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		stopped := v.refused(revision.Name, name, err)
		// A policy may have said it to this process, in words like those of a right.
		if stopped.Result == status.Denied && wish.Target == "" && name.as != nil {
			stopped.Why = grant(v.extension.Name, name.as.GetName(), made.Phases)
		}
		return stopped
	}
	for _, warning := range made.warnings() {
		v.Events.Event(v.object, corev1.EventTypeWarning, eventRenderWarning, text.Clip(revision.Name+": "+warning, longestNote))
	}
	v.rendered.forget(v.extension.Name)
	if stopped := v.withdraw(ctx, nil); stopped.Result != status.Settled {
		return stopped
	}
	return &halt{Outcome: status.Outcome{Result: status.Pending}, quiet: true} // the watch brings it
}

// isCurrent is whether the cache has all revisions that there are.
func (v *visit) isCurrent(ctx context.Context) *halt {
	now, err := bychain.List(ctx, v.Live, v.extension.Name)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("reading the revisions of %s: %w", v.extension.Name, err))
	}
	same := len(now) == len(v.revisions)
	for i := range now {
		same = same && now[i].UID == v.revisions[i].UID && now[i].Generation == v.revisions[i].Generation &&
			// A stamp that was used up by the same content changes no spec.
			now[i].Annotations[extension.StampAnnotation] == v.revisions[i].Annotations[extension.StampAnnotation]
	}
	if !same {
		return outdated()
	}
	return nil
}

// next is the next revision.
func (v *visit) next(number int64, name name, wish *wish, made *content) *olmv1alpha1.ClusterExtensionRevision {
	e := v.extension
	revision := &olmv1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            olm.RevisionName(e.Name, number),
			Labels:          map[string]string{ownerKindLabel: extension.Kind.Kind, ownerNameLabel: e.Name},
			Annotations:     v.annotations(name.stamp, wish),
			OwnerReferences: []metav1.OwnerReference{v.owner()},
		},
		Spec: olmv1alpha1.ClusterExtensionRevisionSpec{
			LifecycleState: olmv1alpha1.LifecycleStateActive, Revision: number, CollisionProtection: wish.Collision, Yield: wish.Yield,
		},
	}
	settingsOf(e).into(&revision.Spec)
	if wish.Target != "" {
		revision.Spec.TargetRef = &olmv1alpha1.TargetReference{Name: wish.Target}
	}
	for _, phase := range made.Phases {
		rendered := olmv1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			rendered.Objects = append(rendered.Objects, olmv1alpha1.RevisionObject{Object: &olmv1alpha1.Manifest{Raw: object.JSON}})
		}
		revision.Spec.Phases = append(revision.Spec.Phases, rendered)
	}
	if warnings := made.warnings(); len(warnings) > 0 {
		revision.Annotations[extension.WarningsAnnotation] = text.Clip(strings.Join(warnings, "\n"), extension.MaxWarnings)
	}
	what := strings.TrimSpace(wish.bundle.Version)
	if what == "" {
		what = wish.pinned
	}
	from := ""
	if wish.bundle.Channel != "" {
		from = ", from channel " + wish.bundle.Channel
	}
	cause := what + " installed" + from
	if name.as == nil {
		revision.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
		revision.Annotations[extension.ProposedAnnotation] = "true"
		revision.Annotations[olmv1alpha1.LifecycleReasonAnnotation] = name.why
		cause = what + " proposed" + from
	}
	revision.Annotations[olmv1alpha1.ChangeCauseAnnotation] = cause
	return revision
}

// owner is the extension. Its deletion does not wait for the revisions.
func (v *visit) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: v.extension.Name, UID: v.extension.UID, Controller: ptr.To(true),
	}
}

// annotations say in a revision what it was made of.
func (v *visit) annotations(stamp string, wish *wish) map[string]string {
	out := map[string]string{
		extension.GenerationAnnotation: strconv.FormatInt(v.extension.Generation, 10),
		extension.MadeOfAnnotation:     wish.digest(),
		extension.StampAnnotation:      stamp,
	}
	for key, value := range map[string]string{
		olmv1alpha1.PackageAnnotation: wish.pkg, olmv1alpha1.BundleAnnotation: wish.bundle.Name, olmv1alpha1.VersionAnnotation: wish.bundle.Version,
		olmv1alpha1.ReferenceAnnotation: wish.pinned, extension.ChannelAnnotation: wish.bundle.Channel, extension.CatalogAnnotation: wish.bundle.Catalog,
	} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

// refused says why a revision was not made. What somebody may do changes without a word to us,
// and so do quotas and policies: those are tried again.
func (v *visit) refused(revision string, name name, err error) *halt {
	who := "Penstock"
	if name.as != nil {
		who = name.as.GetName()
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return outdated()
	case apierrors.IsForbidden(err) && isAboutRights(err):
		stopped := retry(status.Denied, fmt.Errorf("%s in the name of %s: %w", revision, who, err))
		stopped.err = nil // that somebody may not is no fault of this process
		return stopped
	case apierrors.IsForbidden(err):
		return retry(status.Refused, fmt.Errorf("%s in the name of %s: %w", revision, who, err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return stop(status.InvalidManifests, err.Error(), "")
	}
	return retry(status.Failed, fmt.Errorf("writing revision %s in the name of %s: %w", revision, who, err))
}

// isAboutRights is whether a refusal is for what somebody may not do: what admission says of
// the objects, and authorization of revisions. Quotas and policies are none.
func isAboutRights(err error) bool {
	text := err.Error()
	return strings.Contains(text, right.Refusal) ||
		strings.Contains(text, "cannot create resource") || strings.Contains(text, "cannot patch resource")
}
