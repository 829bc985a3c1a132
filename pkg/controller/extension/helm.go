package extension

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// Releases applies by Helm, and keeps its releases.
type Releases interface {
	// Namespace has the Secrets.
	Namespace() string
	// History returns the revisions of a release, newest first.
	History(ctx context.Context, name string) ([]helmapplier.Revision, error)
	Apply(ctx context.Context, wanted helmapplier.Wanted) error
	// Record stores a revision that is deployed, of objects that are there already.
	Record(ctx context.Context, wanted helmapplier.Wanted, description string) (version int, err error)
	Relabel(ctx context.Context, name string, version int, labels map[string]string) error
	// Supersede labels the Secrets of a release: the engine has its objects.
	Supersede(ctx context.Context, name string) error
	Delete(ctx context.Context, name string) error
}

// Objects reads the objects of the cluster to which Helm applies.
type Objects interface {
	// Metadata returns that of an object, nil when there is none. served is false when its kind
	// is served in no version.
	Metadata(ctx context.Context, ref manifest.Ref) (live *metav1.PartialObjectMetadata, served bool, err error)
	// Disown removes an owner from an object, as it was read.
	Disown(ctx context.Context, ref manifest.Ref, live *metav1.PartialObjectMetadata, owner metav1.OwnerReference) error
	// Resource is that of a kind. served is false when it is served in no version.
	Resource(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, served bool, err error)
}

// Freezes reports whether the cluster is frozen.
type Freezes interface {
	// Frozen returns why, nil for not frozen. An error is why that is not known.
	Frozen() (*rollout.Freeze, error)
}

// deployed is the newest revision that is, nil for none. Its labels are trusted also
// when it cannot be read.
func deployed(history []helmapplier.Revision) *helmapplier.Revision {
	for i := range history {
		if history[i].Status == helmapplier.Deployed {
			return &history[i]
		}
	}
	return nil
}

// history reads the release. One of another extension of the name, which is gone or was another
// one, is nobody's to go on with: who may write this extension has no right to its objects by
// that.
func (s *scope) history(ctx context.Context) ([]helmapplier.Revision, *maker.Outcome) {
	history, err := s.Releases.History(ctx, s.extension.Name)
	if err != nil {
		return nil, retry(status.Failed, err)
	}
	for _, one := range history {
		if one.Owner != s.extension.UID {
			stopped := blocked(fmt.Sprintf("revision %d of the Helm release %s/%s does not belong to this ClusterExtension: its Secret has another owner", one.Version, s.Releases.Namespace(), s.extension.Name),
				"wait until garbage collection deletes it; or delete its Secrets, after you have decided what happens to its objects")
			return nil, stopped
		}
	}
	return history, nil
}

// findReleases reads the release. From then on the revisions of the scope are what was deployed
// of it.
func (s *scope) findReleases(ctx context.Context) *maker.Outcome {
	history, stopped := s.history(ctx)
	if stopped != nil {
		return stopped
	}
	s.byHelm, s.release, s.Revisions = true, history, nil
	newest := deployed(history)
	switch {
	case newest == nil:
	case newest.Err != nil:
		return unreadable(newest)
	default:
		s.Revisions = []olmv1alpha1.ClusterExtensionRevision{s.asRevision(newest)}
	}
	return nil
}

// blocked returns the outcome for a release that cannot be taken over. Its Secrets and objects are not
// watched, so the pass is retried.
func blocked(message, why string) *maker.Outcome {
	return stop(status.ReleaseBlocked, message, why).Later()
}

// unreadable returns the outcome for a release with a revision that cannot be read.
func unreadable(one *helmapplier.Revision) *maker.Outcome {
	return blocked(fmt.Sprintf("revision %d of its Helm release (%s) cannot be read: %s", one.Version, one.Status, one.Err), "restore its Secrets from a backup")
}

// asRevision converts a revision of a release into a revision, for status and the passes. Helm does
// not watch its objects, so their availability is unknown.
func (s *scope) asRevision(one *helmapplier.Revision) olmv1alpha1.ClusterExtensionRevision {
	finished := metav1.Condition{Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Deployed", Message: one.Description}
	if isBeginning(one) {
		finished.Status, finished.Reason = metav1.ConditionFalse, "Unfinished"
	}
	conditions := []metav1.Condition{
		finished,
		{Type: olmv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: status.ReasonHandedToHelm, Message: "Helm does not watch what it has applied"},
	}
	return olmv1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("revision %d of its Helm release", one.Version), Annotations: one.Labels, OwnerReferences: []metav1.OwnerReference{s.owner()}},
		Spec:       olmv1alpha1.ClusterExtensionRevisionSpec{LifecycleState: olmv1alpha1.LifecycleStateActive, Revision: int64(one.Version)},
		Status:     olmv1alpha1.ClusterExtensionRevisionStatus{Conditions: conditions},
	}
}

// helmWriter has Helm apply content.
type helmWriter struct{ making }

// Propose implements maker.Writer: a proposal is a revision, which the engine rolls out.
func (w helmWriter) Propose(_ context.Context, identity maker.Identity) *maker.Outcome {
	return stop(status.Denied, "nothing can be proposed while Helm applies extensions (feature gate BoxcutterRuntime is off): "+identity.Approval,
		"write the extension again in your own name, with automatic approval")
}

// Write lets Helm apply content, with the identity of the engine. These checks come first:
//
//  1. A dry-run creates the content as the next revision of the chain, in the name of the user. It
//     checks every right, policy and quota that a revision needs.
//  2. The user must have the right to delete the objects that the release loses. The chain does not
//     know these objects. If the teardown policy changes from Orphan to Delete, this check covers all
//     objects of the release.
//  3. The requirements between extensions allow the version (inOrder). An upgrade that no user just
//     asked for may begin now (mayBegin).
//  4. The cluster is not frozen.
func (w helmWriter) Write(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	revision, stopped := w.Next(ctx, made.Phases)
	if stopped != nil {
		return stopped
	}
	w.describe(revision, identity, made)
	if stopped := w.Create(ctx, identity.As, revision, metav1.DryRunAll); stopped != nil {
		return w.withGrant(stopped, identity, made)
	}
	if stopped := w.mayRemove(ctx, identity, made); stopped != nil {
		return stopped
	}
	if stopped := cmp.Or(w.inOrder(ctx, identity.Author, w.desired.of(made).bundle.Version), w.mayBegin(ctx, identity), w.mayWrite()); stopped != nil {
		return stopped
	}
	wanted := w.wanted(releaseLabels(revision))
	wanted.Take = w.desired.Collision == olmv1alpha1.CollisionProtectionNone
	var objects []manifest.Object
	for _, phase := range made.Phases {
		objects = append(objects, phase.Objects...)
	}
	if stopped := w.applied(ctx, wanted, objects); stopped != nil {
		return stopped
	}
	w.rendered.forget(w.Name)
	return settled()
}

// applied has Helm apply objects, and is nil when it has.
func (s *scope) applied(ctx context.Context, wanted helmapplier.Wanted, objects []manifest.Object) *maker.Outcome {
	if err := s.add(&wanted, objects...); err != nil {
		return stop(status.InvalidManifests, err.Error(), "")
	}
	if err := s.Releases.Apply(ctx, wanted); err != nil {
		return retry(status.Failed, err)
	}
	return s.findReleases(ctx)
}

// mayRemove returns an outcome when the identity must not delete the objects that the release loses.
func (s *scope) mayRemove(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	current := deployed(s.release)
	if current == nil {
		return nil
	}
	if may, err := s.mayHaveAnything(ctx, identity.As); err != nil || may {
		if err != nil {
			return retry(status.Failed, err)
		}
		return nil
	}
	kept := map[string]bool{}
	for _, phase := range made.Phases {
		for _, object := range phase.Objects {
			kept[object.ID.String()] = current.Labels[teardownNote] != string(olmv1alpha1.TeardownPolicyOrphan) ||
				settingsOf(s.extension).Teardown == olmv1alpha1.TeardownPolicyOrphan
		}
	}
	objects, err := objectsOf(current)
	if err != nil {
		return blocked(fmt.Sprintf("revision %d of its Helm release: %s", current.Version, err), "")
	}
	for _, object := range objects {
		if kept[object.ID.String()] {
			continue
		}
		resource, served, err := s.Objects.Resource(ctx, object.GroupVersionKind())
		if err == nil && served {
			var may bool
			if may, err = s.Rights.May(ctx, identity.As, authz.On(resource, "delete", object.Namespace, object.Name)); err == nil && !may {
				return denied("%s cannot delete %s, which is in the release and would be removed", identity.As.GetName(), object.ID)
			}
		}
		if err != nil {
			return retry(status.Failed, fmt.Errorf("finding out whether %s may delete %s: %w", identity.As.GetName(), object.ID, err))
		}
	}
	return nil
}

// mayWrite returns the reason why the cluster must not be written now, nil when it may.
func (s *scope) mayWrite() *maker.Outcome {
	freeze, err := s.Freezes.Frozen()
	switch {
	case err != nil:
		return retry(status.Frozen, fmt.Errorf("finding out whether the cluster is frozen: %w", err))
	case freeze != nil:
		return stop(status.Frozen, freeze.String()+"; Helm applies nothing", "").Later()
	}
	return nil
}

// Keep records on a release, whose content is the requested one, the stamp that requests it.
func (w helmWriter) Keep(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, made *content) *maker.Outcome {
	if made != nil {
		w.rendered.forget(w.Name)
	}
	stamp := revision.Annotations[extension.StampAnnotation]
	if made, isNew, err := w.newStamp(revision); err == nil && isNew {
		stamp = w.stampName(made)
	}
	labels := maps.Clone(revision.Annotations)
	maps.Copy(labels, w.annotations(stamp, w.desired.of(made).asIn(revision)))
	if stamp == revision.Annotations[extension.StampAnnotation] {
		labels[extension.GenerationAnnotation] = revision.Annotations[extension.GenerationAnnotation]
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	if maps.Equal(labels, revision.Annotations) {
		return settled()
	}
	if err := w.Releases.Relabel(ctx, w.extension.Name, int(revision.Spec.Revision), labels); err != nil {
		return retry(status.Failed, fmt.Errorf("noting on revision %d of release %s what it was made of: %w", revision.Spec.Revision, w.extension.Name, err))
	}
	return settled()
}
