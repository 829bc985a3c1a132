package extension

import (
	"context"
	"fmt"
	"maps"
	"slices"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// Labels of a release's revisions that releaseLabels does not set.
const (
	// ofNote is the uid of the chain's revision from which the release was made.
	ofNote = "penstock.dev/of-revision"
	// unfinishedNote is the uid of the newest revision of the chain, if the objects of the release
	// differ from its objects. Helm must still apply that revision.
	unfinishedNote = "penstock.dev/unfinished-revision"
	// teardownNote is the policy that decides whether the objects have an owner.
	teardownNote = extension.TeardownPolicyAnnotation
)

// releaseNotes returns the labels of a release that revisions do not have.
func releaseNotes() []string { return []string{ofNote, unfinishedNote, teardownNote} }

// isUnfinishedInstallation reports whether a revision of a release has only the objects of a chain's revision
// that never succeeded.
func isUnfinishedInstallation(one *helmapplier.Revision) bool {
	return one.Labels[unfinishedNote] != "" && one.Labels[unfinishedNote] == one.Labels[ofNote]
}

// record stores a revision of the release, unless it is stored already. It has the objects of the
// newest revision that succeeded, and the objects of newer revisions that have begun. Helm never
// deletes objects that it does not know.
//
// If Helm had the objects before, and another revision was created since, the content of the
// release comes first. A revision that was taken back and has not succeeded yet still counts as the
// content of the release.
func (s *scope) record(ctx context.Context, live []*olmv1alpha1.ClusterExtensionRevision) (version int, stopped *maker.Outcome) {
	newest := live[0]
	history, stopped := s.history(ctx)
	if stopped != nil {
		return 0, stopped
	}
	current := deployed(history)
	if current != nil && (current.Err != nil || current.TakenOver) {
		current = nil
	}
	adopted := newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation]
	if current != nil && adopted == s.releaseName(current.Version) && !maker.HasSucceeded(newest) {
		return current.Version, nil
	}
	labels, objects, err := s.base(ctx, live, current)
	if err != nil {
		return 0, retry(status.Failed, err)
	}
	if current != nil && current.Labels[ofNote] == labels[ofNote] && current.Labels[unfinishedNote] == labels[unfinishedNote] {
		return current.Version, nil
	}
	wanted := s.wanted(labels)
	if err := s.add(&wanted, objects...); err != nil {
		return 0, retry(status.Failed, err)
	}
	if version, err = s.Releases.Record(ctx, wanted, "Handed over by "+newest.Name); err != nil {
		return 0, retry(status.Failed, err)
	}
	return version, nil
}

// base returns the labels and the objects of the release that record stores.
func (s *scope) base(ctx context.Context, live []*olmv1alpha1.ClusterExtensionRevision, current *helmapplier.Revision) (labels map[string]string, objects []manifest.Object, err error) {
	newest := live[0]
	var newer []*olmv1alpha1.ClusterExtensionRevision
	if handed := slices.IndexFunc(live, rev.IsHanded); handed > 0 && current != nil && newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] == "" {
		labels, newer = map[string]string{}, live[:handed]
		maps.Copy(labels, current.Labels)
		if objects, err = objectsOf(current); err != nil {
			return nil, nil, fmt.Errorf("revision %d of its Helm release: %w", current.Version, err)
		}
	} else {
		at := max(0, slices.IndexFunc(live, maker.HasSucceeded))
		labels, newer = releaseLabels(live[at]), live[:at]
		labels[ofNote] = string(live[at].UID)
		if objects, err = s.objectsIn(ctx, live[at]); err != nil {
			return nil, nil, err
		}
		if at == 0 && maker.HasSucceeded(newest) {
			return labels, objects, nil
		}
	}
	// The newest revision has other objects.
	delete(labels, extension.MadeOfAnnotation)
	labels[unfinishedNote] = string(newest.UID)
	known := map[string]bool{}
	for _, object := range objects {
		known[object.ID.String()] = true
	}
	for _, one := range newer {
		more, err := s.objectsIn(ctx, one)
		if err != nil {
			return nil, nil, err
		}
		for _, object := range more {
			if !known[object.ID.String()] {
				known[object.ID.String()] = true
				objects = append(objects, object)
			}
		}
	}
	return labels, objects, nil
}

func (s *scope) objectsIn(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) ([]manifest.Object, error) {
	bodies, err := s.Manifests(ctx, revision.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", revision.Name, err)
	}
	objects := make([]manifest.Object, 0, len(bodies))
	for _, body := range bodies {
		object, err := manifest.Parse(body)
		if err != nil {
			return nil, fmt.Errorf("the manifests of %s: %w", revision.Name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// complete lets Helm apply the newest revision of the chain, if the engine had only begun with it.
// The revision was admitted when it was created. complete returns nil if there is no such revision,
// or if it is no longer desired.
func (s *scope) complete(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision) *maker.Outcome {
	current := deployed(s.release)
	switch {
	case current == nil || current.Labels[unfinishedNote] != string(newest.UID):
		return nil
	case newest.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused:
		return stop(status.Held, fmt.Sprintf("%s is paused: Helm applies nothing before it is resumed", newest.Name), "resume it with: kubectl penstock resume "+newest.Name)
	case !maker.IsRollback(newest) && !maker.HasSucceeded(newest) && !s.isDecided(newest):
		return nil
	}
	if stopped := s.mayWrite(); stopped != nil {
		return stopped
	}
	objects, err := s.objectsIn(ctx, newest)
	if err != nil {
		return retry(status.Failed, err)
	}
	wanted := s.wanted(releaseLabels(newest))
	wanted.Labels[ofNote] = string(newest.UID)
	wanted.Take = newest.Spec.CollisionProtection == olmv1alpha1.CollisionProtectionNone
	// The admitted policy counts. No check has covered later changes of the extension.
	wanted.Keep = newest.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
	return s.applied(ctx, wanted, objects)
}

// changesTeardown reports whether the teardown policy has changed since Helm applied the objects.
// Helm then applies them again, with or without the owner.
func (s *scope) changesTeardown() bool {
	newest := s.Newest()
	if !s.byHelm || newest == nil {
		return false
	}
	policy := newest.Annotations[teardownNote]
	if policy == "" || policy == string(settingsOf(s.extension).Teardown) {
		return false
	}
	_, isNew, err := s.newStamp(newest)
	return err == nil && isNew
}
