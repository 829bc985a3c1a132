package extension

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/text"
)

// Labels that OLM's clients use to find the revisions of an extension.
const (
	ownerKindLabel = "olm.operatorframework.io/owner-kind"
	ownerNameLabel = "olm.operatorframework.io/owner-name"
)

// eventRenderWarning is the reason of an event about the content of a bundle or chart.
const eventRenderWarning = "RenderWarning"

// longestNote is the most bytes that the API accepts in the note of an event.
const longestNote = 1024

type engineWriter struct{ making }

// Write creates the next revision as its identity. It creates a proposal as this process.
func (w engineWriter) Write(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	if stopped := w.inOrder(ctx, identity.Author, w.desired.of(made).bundle.Version); stopped != nil {
		return stopped
	}
	if identity.Approval == "" {
		if stopped := w.mayBegin(ctx, identity); stopped != nil {
			return stopped
		}
	}
	revision, outcome := w.Replace(ctx, identity, made.Phases, func(next *olmv1alpha1.ClusterExtensionRevision) { w.describe(next, identity, made) })
	if revision != nil {
		for _, warning := range made.warnings() {
			w.Events.Event(w.object, corev1.EventTypeWarning, eventRenderWarning, text.Clip(revision.Name+": "+warning, longestNote))
		}
		w.rendered.forget(w.Name)
	}
	return w.withGrant(outcome, identity, made)
}

// withGrant adds to a denial the roles that would grant the missing rights. It adds none if this
// process itself was denied, because a policy can deny with a similar text.
func (m making) withGrant(outcome *maker.Outcome, identity maker.Identity, made *content) *maker.Outcome {
	if outcome.Reason == maker.Denied && m.desired.Target == "" && identity.As != nil {
		outcome.Why = grant(m.Name, identity.As.GetName(), made.Phases)
	}
	return outcome
}

// describe records the input and the rollout settings in the next revision.
func (m making) describe(revision *olmv1alpha1.ClusterExtensionRevision, identity maker.Identity, made *content) {
	desired := m.desired.of(made)
	m.own(revision)
	revision.Annotations = m.annotations(identity.Stamp, desired)
	revision.Spec.CollisionProtection, revision.Spec.Yield = desired.Collision, desired.Yield
	if desired.Target != "" {
		revision.Spec.TargetRef = &olmv1alpha1.TargetReference{Name: desired.Target}
	}
	for key, value := range map[string]string{extension.ContentAnnotation: m.extension.Annotations[extension.ContentAnnotation], olmv1alpha1.KubeVersionAnnotation: made.KubeVersion, olmv1alpha1.MaxOpenShiftAnnotation: made.MaxOpenShift(), olmv1alpha1.VerifiedAnnotation: made.signed.String(), extension.PatchedAnnotation: made.patches()} {
		if value != "" {
			revision.Annotations[key] = value
		}
	}
	if until := m.reportDrift(); until != "" {
		revision.Annotations[extension.ReportDriftUntilAnnotation] = until
	}
	if warnings := made.warnings(); len(warnings) > 0 {
		revision.Annotations[extension.WarningsAnnotation] = text.Clip(strings.Join(warnings, "\n"), extension.MaxWarnings)
	}
	done := "installed"
	if identity.Approval != "" {
		revision.Annotations[extension.ProposedAnnotation] = "true"
		done = "proposed"
	}
	cause := cmp.Or(strings.TrimSpace(desired.bundle.Version), desired.pinned) + " " + done
	if desired.bundle.Channel != "" {
		cause += ", from channel " + desired.bundle.Channel
	}
	revision.Annotations[olmv1alpha1.ChangeCauseAnnotation] = cause
}

// own makes the extension the owner of a revision, and sets the extension's settings.
func (s *scope) own(revision *olmv1alpha1.ClusterExtensionRevision) {
	revision.Labels = map[string]string{ownerKindLabel: extension.Kind.Kind, ownerNameLabel: s.Name}
	revision.OwnerReferences = []metav1.OwnerReference{s.owner()}
	settingsOf(s.extension).into(&revision.Spec)
}

// owner returns an owner reference to the extension. The deletion of the extension does not wait
// for the revisions.
func (s *scope) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: s.extension.Name, UID: s.extension.UID, Controller: ptr.To(true),
	}
}

// annotations returns the annotations that record the input of a revision.
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

// neverApproved reports whether a proposed revision was never rolled out: it waits, or a user
// declined it by archiving it.
func neverApproved(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[extension.ProposedAnnotation] == "true"
}

// Propose implements maker.Writer. It returns an outcome if the proposal exists already or is not
// allowed.
func (w engineWriter) Propose(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if stopped := w.Proposed(ctx, w.desired.digest(), identity.Stamp); stopped != nil {
		return stopped
	}
	return w.mayPropose(ctx, identity.Author)
}

// mayPropose returns the reason why no proposal may be created. This process creates proposals as
// itself, and no admission check limits it, so a proposal must not affect other users. Only the
// author may create a revision in a new chain, or in a chain of another owner.
func (s *scope) mayPropose(ctx context.Context, who user.Info) *maker.Outcome {
	for i := range s.Revisions {
		if s.isOwned(&s.Revisions[i]) && !neverApproved(&s.Revisions[i]) {
			return nil
		}
	}
	for i := range s.Revisions {
		if !neverApproved(&s.Revisions[i]) {
			return stop(status.NameTaken, fmt.Sprintf("%s was not made for this ClusterExtension: delete this ClusterExtension and use another name; or, to take over the existing revisions, remove annotation %s from this ClusterExtension: the next revision is then made in the name of the user who removed it, and rolled out at once", s.Revisions[i].Name, extension.ApprovalAnnotation), "")
		}
	}
	return s.mayCreate(ctx, who)
}
