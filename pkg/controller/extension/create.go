package extension

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
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

// engineWriter writes revisions that the engine rolls out.
type engineWriter struct{ making }

// Write makes the next revision:
//
//  1. The revisions are as the informer has them.
//  2. The revision, in the name of its identity, or Paused in our own.
//  3. Proposals that nobody has approved make room for it, now that it is there: one that is
//     refused takes nothing away.
func (w engineWriter) Write(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	if stopped := w.Unchanged(ctx); stopped != nil {
		return stopped
	}
	revision, stopped := w.create(ctx, identity, made)
	if stopped != nil {
		return stopped
	}
	for _, warning := range made.warnings() {
		w.Events.Event(w.object, corev1.EventTypeWarning, eventRenderWarning, text.Clip(revision.Name+": "+warning, longestNote))
	}
	w.rendered.forget(w.Name)
	if stopped := w.Withdraw(ctx, nil); stopped != nil {
		return stopped
	}
	return awaited()
}

// create writes the next revision of some content; with a dry run it is only admitted.
func (m making) create(ctx context.Context, identity maker.Identity, made *content, dryRun ...string) (*olmv1alpha1.ClusterExtensionRevision, *maker.Outcome) {
	revision, stopped := m.Next(ctx, made.Phases)
	if stopped != nil {
		return nil, stopped
	}
	m.describe(revision, identity, m.desired.of(made), made.warnings())
	stopped = m.Create(ctx, identity.As, revision, dryRun...)
	// A policy may have denied it to this process, in words like those of a right.
	if stopped != nil && stopped.Reason == maker.Denied && m.desired.Target == "" && identity.As != nil {
		stopped.Why = grant(m.Name, identity.As.GetName(), made.Phases)
	}
	return revision, stopped
}

// describe says in the next revision what it is made of, and how it is rolled out.
func (s *scope) describe(revision *olmv1alpha1.ClusterExtensionRevision, identity maker.Identity, desired *desired, warnings []string) {
	s.own(revision)
	revision.Annotations = s.annotations(identity.Stamp, desired)
	revision.Spec.CollisionProtection, revision.Spec.Yield = desired.Collision, desired.Yield
	if desired.Target != "" {
		revision.Spec.TargetRef = &olmv1alpha1.TargetReference{Name: desired.Target}
	}
	if len(warnings) > 0 {
		revision.Annotations[extension.WarningsAnnotation] = text.Clip(strings.Join(warnings, "\n"), extension.MaxWarnings)
	}
	done := "installed"
	if identity.Approval != "" {
		revision.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
		revision.Annotations[extension.ProposedAnnotation] = "true"
		revision.Annotations[olmv1alpha1.LifecycleReasonAnnotation] = identity.Approval
		done = "proposed"
	}
	cause := cmp.Or(strings.TrimSpace(desired.bundle.Version), desired.pinned) + " " + done
	if desired.bundle.Channel != "" {
		cause += ", from channel " + desired.bundle.Channel
	}
	revision.Annotations[olmv1alpha1.ChangeCauseAnnotation] = cause
}

// own makes a revision one of the extension, with its settings.
func (s *scope) own(revision *olmv1alpha1.ClusterExtensionRevision) {
	revision.Labels = map[string]string{ownerKindLabel: extension.Kind.Kind, ownerNameLabel: s.Name}
	revision.OwnerReferences = []metav1.OwnerReference{s.owner()}
	settingsOf(s.extension).into(&revision.Spec)
}

// owner is the extension. Its deletion does not wait for the revisions.
func (s *scope) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: s.extension.Name, UID: s.extension.UID, Controller: ptr.To(true),
	}
}

// annotations say in a revision what it was made of.
func (s *scope) annotations(stamp string, desired *desired) map[string]string {
	out := map[string]string{
		extension.GenerationAnnotation: strconv.FormatInt(s.extension.Generation, 10),
		extension.MadeOfAnnotation:     desired.digest(),
		extension.StampAnnotation:      stamp,
	}
	for key, value := range map[string]string{
		olmv1alpha1.PackageAnnotation: desired.pkg, olmv1alpha1.BundleAnnotation: desired.bundle.Name, olmv1alpha1.VersionAnnotation: desired.bundle.Version,
		olmv1alpha1.ReferenceAnnotation: desired.pinned, extension.ChannelAnnotation: desired.bundle.Channel, extension.CatalogAnnotation: desired.bundle.Catalog,
	} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}
