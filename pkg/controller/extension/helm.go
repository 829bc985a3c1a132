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

// Releases applies objects by Helm, and stores Helm releases.
type Releases interface {
	// Namespace returns the namespace of the release Secrets.
	Namespace() string
	// History returns the revisions of a release, newest first.
	History(ctx context.Context, name string) ([]helmapplier.Revision, error)
	Apply(ctx context.Context, wanted helmapplier.Wanted) error
	// Record stores a deployed revision of objects that already exist.
	Record(ctx context.Context, wanted helmapplier.Wanted, description string) (version int, err error)
	Relabel(ctx context.Context, name string, version int, labels map[string]string) error
	// Supersede labels the Secrets of a release after the engine has taken its objects.
	Supersede(ctx context.Context, name string) error
	Delete(ctx context.Context, name string) error
}

// Objects accesses the objects in the target cluster of Helm.
type Objects interface {
	// Metadata returns the metadata of an object, or nil if it does not exist. served is false if
	// the cluster serves no version of its kind.
	Metadata(ctx context.Context, ref manifest.Ref) (live *metav1.PartialObjectMetadata, served bool, err error)
	// Disown removes an owner from an object, with a precondition on the given version.
	Disown(ctx context.Context, ref manifest.Ref, live *metav1.PartialObjectMetadata, owner metav1.OwnerReference) error
	// Resource returns the resource of a kind. served is false if the cluster serves no version of
	// it.
	Resource(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, served bool, err error)
}

// Freezes reports whether the cluster is frozen.
type Freezes interface {
	// Frozen returns the reason of the freeze, or nil if there is none. An error explains why the
	// answer is unknown.
	Frozen() (*rollout.Freeze, error)
}

// deployed returns the newest deployed revision, or nil. Its labels are valid even if its content
// cannot be read.
func deployed(history []helmapplier.Revision) *helmapplier.Revision {
	for i := range history {
		if history[i].Status == helmapplier.Deployed {
			return &history[i]
		}
	}
	return nil
}

// history reads the release. It refuses the release of another extension with the same name, for
// example a deleted one. The right to write this extension gives no right to the objects of the
// other extension.
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

// findReleases reads the release. From then on the scope's revisions are the deployed revisions of
// the release.
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
	if isUnfinishedInstallation(one) {
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

type helmWriter struct{ making }

// Propose implements maker.Writer. A proposal is a revision, which the engine rolls out.
func (w helmWriter) Propose(_ context.Context, identity maker.Identity) *maker.Outcome {
	return stop(status.Denied, "nothing can be proposed while Helm applies extensions (feature gate BoxcutterRuntime is off): "+identity.Approval,
		"write the extension again in your own name, with automatic approval")
}

// Write lets Helm apply content, with the identity of the engine. It first makes these checks:
//
//  1. A dry-run creates the content as the next revision of the chain, as the user. It checks every
//     right, policy and quota that a revision needs.
//  2. The user must have the right to delete the objects that the release loses. The chain does not
//     know these objects. If the teardown policy changes from Orphan to Delete, this check covers
//     all
//     objects of the release.
//  3. The requirements between extensions must allow the version (inOrder). An upgrade that no user
//     just requested must be allowed to begin now (mayBegin).
//  4. The cluster must not be frozen.
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

// applied lets Helm apply objects. It returns nil after success.
func (s *scope) applied(ctx context.Context, wanted helmapplier.Wanted, objects []manifest.Object) *maker.Outcome {
	if err := s.add(&wanted, objects...); err != nil {
		return stop(status.InvalidManifests, err.Error(), "")
	}
	if err := s.Releases.Apply(ctx, wanted); err != nil {
		return retry(status.Failed, err)
	}
	return s.findReleases(ctx)
}

// mayRemove returns an outcome if the identity must not delete the objects that the release loses.
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

// mayWrite returns the reason why Helm must not write to the cluster now, or nil.
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

// Keep records the requesting stamp on a release that has the desired content.
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
