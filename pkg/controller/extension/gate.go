package extension

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// settleGate moves an extension to the applier that the feature gate selects, the engine or Helm.
// It returns nil if nothing is left to do. An extension for another cluster than the host has no
// releases: the engine always applies it.
func (s *scope) settleGate(ctx context.Context) *maker.Outcome {
	if s.Releases == nil || s.target() != "" {
		return nil
	}
	if s.ByHelm {
		return s.hand(ctx)
	}
	return s.takeBack(ctx)
}

// live returns the revisions that may have objects, newest first. It omits revisions that are
// archived or being deleted.
func (s *scope) live() []*olmv1alpha1.ClusterExtensionRevision {
	var live []*olmv1alpha1.ClusterExtensionRevision
	for i := range s.Revisions {
		one := &s.Revisions[i]
		if one.DeletionTimestamp == nil && one.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && !neverApproved(one) {
			live = append(live, one)
		}
	}
	return live
}

func (s *scope) releaseName(version int) string {
	return fmt.Sprintf("%s/%s:%d", s.Releases.Namespace(), s.extension.Name, version)
}

// hand hands the objects of the engine to Helm. After a crash it repeats only unfinished steps:
//
//  1. It withdraws a proposal, so that no user can approve it.
//  2. If the cluster is not frozen, it stores a deployed revision of the release, with the objects
//     of the
//     newest revision that succeeded.
//  3. It marks the revisions as handed to Helm. From then on the engine no longer rolls them out,
//     and
//     gives their objects to Helm's field manager.
//  4. It waits for the engine. Until then Helm applies nothing.
//  5. The revisions of this scope become the revisions of the release.
//  6. Helm finishes the rollouts that the engine had begun.
func (s *scope) hand(ctx context.Context) *maker.Outcome {
	if stopped := s.Withdraw(ctx, nil); stopped != nil {
		return stopped
	}
	live := s.live()
	if len(live) > 0 && !rev.IsHanded(live[0]) {
		if stopped := s.mayWrite(); stopped != nil {
			return stopped
		}
		if stopped := s.Unchanged(ctx); stopped != nil {
			return stopped
		}
		version, stopped := s.record(ctx, live)
		if stopped != nil {
			return stopped
		}
		return s.mark(ctx, live, s.releaseName(version))
	}
	for _, one := range live {
		if !rev.IsHanded(one) {
			return s.mark(ctx, live, live[0].Annotations[olmv1alpha1.HandedToHelmAnnotation])
		}
	}
	for _, one := range live {
		if held := meta.FindStatusCondition(one.Status.Conditions, olmv1alpha1.ConditionHeld); held == nil || held.Reason != status.ReasonHandedToHelm {
			return awaited()
		}
	}
	if stopped := s.findReleases(ctx); stopped != nil || len(live) == 0 {
		return stopped
	}
	return s.complete(ctx, live[0])
}

// mark marks revisions as handed to Helm, the newest first. The chain belongs to the engine until
// the newest has the mark.
func (s *scope) mark(ctx context.Context, live []*olmv1alpha1.ClusterExtensionRevision, release string) *maker.Outcome {
	for _, one := range live {
		if rev.IsHanded(one) {
			continue
		}
		if stopped := s.annotate(ctx, one, map[string]any{olmv1alpha1.HandedToHelmAnnotation: release}); stopped != nil {
			return stopped
		}
	}
	return awaited()
}

// annotate writes annotations of a revision as this process; nil removes an annotation.
func (s *scope) annotate(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, annotations map[string]any) *maker.Outcome {
	return s.Patch(ctx, nil, revision, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func (s *scope) wanted(labels map[string]string) helmapplier.Wanted {
	return helmapplier.Wanted{
		Name: s.extension.Name, Namespace: s.extension.Spec.Namespace, Owner: s.owner(), Labels: labels,
		Keep: settingsOf(s.extension).Teardown == olmv1alpha1.TeardownPolicyOrphan,
	}
}

// ownerLabels returns the labels that operator-controller uses to find the objects of its releases.
func (s *scope) ownerLabels() map[string]string {
	return map[string]string{ownerKindLabel: extension.Kind.Kind, ownerNameLabel: s.extension.Name}
}

// add adds objects to a request to Helm, with OLM's owner labels.
func (s *scope) add(wanted *helmapplier.Wanted, objects ...manifest.Object) error {
	for _, object := range objects {
		labelled, err := withLabels(object, s.ownerLabels())
		if err != nil {
			return err
		}
		wanted.Objects = append(wanted.Objects, labelled.JSON)
	}
	return nil
}

// releaseLabels returns the facts of a revision that a release stores: its inputs, its owner, and
// whether the objects outlive the extension.
func releaseLabels(revision *olmv1alpha1.ClusterExtensionRevision) map[string]string {
	kept := map[string]string{teardownNote: string(settingsIn(&revision.Spec).Teardown)}
	for _, key := range []string{
		olmv1alpha1.PackageAnnotation, olmv1alpha1.BundleAnnotation, olmv1alpha1.VersionAnnotation, olmv1alpha1.ReferenceAnnotation,
		extension.ChannelAnnotation, extension.CatalogAnnotation, extension.GenerationAnnotation, extension.MadeOfAnnotation, extension.StampAnnotation,
	} {
		if value := revision.Annotations[key]; value != "" {
			kept[key] = value
		}
	}
	return kept
}
