package extension

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// settleGate brings an extension to where the feature gate says that it is applied, and is nil
// when it is there. An extension for another cluster than the host has no releases: it is rolled
// out by the engine whatever the gate says.
func (v *visit) settleGate(ctx context.Context) *halt {
	if v.Releases == nil || v.target() != "" {
		return nil
	}
	if v.ByHelm {
		return v.hand(ctx)
	}
	return v.takeBack(ctx)
}

// live are the revisions that have objects, or may have: neither archived nor being deleted,
// newest first.
func (v *visit) live() []*olmv1alpha1.ClusterExtensionRevision {
	var live []*olmv1alpha1.ClusterExtensionRevision
	for i := range v.revisions {
		one := &v.revisions[i]
		if one.DeletionTimestamp == nil && one.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && !neverApproved(one) {
			live = append(live, one)
		}
	}
	return live
}

func isHanded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.HandedToHelmAnnotation] != ""
}

// releaseName names a revision of the release of an extension.
func (v *visit) releaseName(version int) string {
	return fmt.Sprintf("%s/%s:%d", v.Releases.Namespace(), v.extension.Name, version)
}

// hand gives what the engine has rolled out to Helm. Each step is found done after a crash:
//
//  1. A proposal is withdrawn: nobody can approve it.
//  2. The cluster is not frozen, and the release has a deployed revision, made of the newest revision that has succeeded.
//  3. The revisions say that they were handed to it. From then on the engine rolls nothing of
//     them out, and gives their objects to Helm's field manager.
//  4. That is done. Until then Helm applies nothing.
//  5. The revisions of this visit are those of the release.
//  6. What the engine had begun Helm finishes.
func (v *visit) hand(ctx context.Context) *halt {
	if stopped := v.withdraw(ctx, nil); stopped.Result != status.Settled {
		return stopped
	}
	live := v.live()
	if len(live) > 0 && !isHanded(live[0]) {
		if stopped := v.mayWrite(); stopped != nil {
			return stopped
		}
		if stopped := v.isCurrent(ctx); stopped != nil {
			return stopped
		}
		version, stopped := v.record(ctx, live)
		if stopped != nil {
			return stopped
		}
		return v.mark(ctx, live, v.releaseName(version))
	}
	for _, one := range live {
		if !isHanded(one) {
			return v.mark(ctx, live, live[0].Annotations[olmv1alpha1.HandedToHelmAnnotation])
		}
	}
	for _, one := range live {
		if held := meta.FindStatusCondition(one.Status.Conditions, olmv1alpha1.ConditionHeld); held == nil || held.Reason != status.ReasonHandedToHelm {
			return &halt{Outcome: status.Outcome{Result: status.Pending}, quiet: true} // the watch brings it
		}
	}
	if stopped := v.findReleases(ctx); stopped != nil || len(live) == 0 {
		return stopped
	}
	return v.complete(ctx, live[0])
}

// mark says on revisions that they were handed to Helm, on the newest one first: as long as
// that is not, the chain is the engine's.
func (v *visit) mark(ctx context.Context, live []*olmv1alpha1.ClusterExtensionRevision, release string) *halt {
	for _, one := range live {
		if isHanded(one) {
			continue
		}
		if stopped := v.annotate(ctx, one, map[string]any{olmv1alpha1.HandedToHelmAnnotation: release}); stopped != nil {
			return stopped
		}
	}
	return &halt{Outcome: status.Outcome{Result: status.Pending}, quiet: true} // the watch brings it
}

// annotate writes annotations of a revision in our own name; nil removes one.
func (v *visit) annotate(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, annotations map[string]any) *halt {
	err := patch(ctx, v.Own, revision, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return v.refused(revision.Name, name{}, err)
	}
	return nil
}

// wanted is what Helm is asked for, without objects.
func (v *visit) wanted(labels map[string]string) helmapplier.Wanted {
	return helmapplier.Wanted{
		Name: v.extension.Name, Namespace: v.extension.Spec.Namespace, Owner: v.owner(), Labels: labels,
		Keep: settingsOf(v.extension).Teardown == olmv1alpha1.TeardownPolicyOrphan,
	}
}

// ownerLabels are those by which operator-controller knows the objects of its releases.
func (v *visit) ownerLabels() map[string]string {
	return map[string]string{ownerKindLabel: extension.Kind.Kind, ownerNameLabel: v.extension.Name}
}

// add has Helm asked for more objects, with the labels of OLM's owner.
func (v *visit) add(wanted *helmapplier.Wanted, objects ...manifest.Object) error {
	for _, object := range objects {
		labelled, err := withLabels(object, v.ownerLabels())
		if err != nil {
			return err
		}
		wanted.Objects = append(wanted.Objects, labelled.JSON)
	}
	return nil
}

// releaseLabels are what a release keeps of a revision: what it was made of, for whom, and whether
// the objects stay without the extension.
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
