package extension

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// States of ReleaseSecretsAnnotation.
const (
	secretsKept    = "kept"
	secretsRemoved = "removed"
)

// takeBack makes the next revision from the content that Helm has applied. It returns nil if there
// is no such content, or if it was taken back already. It reads the release only if there are no
// revisions, or if the newest one was handed to Helm.
func (s *scope) takeBack(ctx context.Context) *maker.Outcome {
	live := s.live()
	if len(live) > 0 && !rev.IsHanded(live[0]) {
		return s.finish(ctx, live[0])
	}
	if has, known := s.hasRelease(); len(live) == 0 && known && !has {
		return nil
	}
	history, stopped := s.history(ctx)
	if stopped != nil {
		return stopped
	}
	chosen, why := helmapplier.Choose(history)
	switch {
	case why != nil:
		return blocked(why.Message, why.Help)
	case chosen == nil && len(live) > 0:
		return blocked(fmt.Sprintf("%s was handed to the Helm release %s, which is gone", live[0].Name, live[0].Annotations[olmv1alpha1.HandedToHelmAnnotation]),
			"restore its Secrets from a backup; or delete the revisions, and set the annotation "+extension.CollisionProtectionAnnotation+" to None")
	case chosen == nil:
		return nil
	}
	return s.adopt(ctx, chosen)
}

// adopt makes a revision from a release's revision, as this process: the objects exist already, and
// the user who installed them was checked then. The adoption takes objects over from any owner, so
// it refuses objects of other owners.
func (s *scope) adopt(ctx context.Context, one *helmapplier.Revision) *maker.Outcome {
	if stopped := s.Unchanged(ctx); stopped != nil {
		return stopped
	}
	objects, err := objectsOf(one)
	if err != nil {
		return blocked(fmt.Sprintf("revision %d of its Helm release: %s", one.Version, err), "")
	}
	taken, left, stopped := s.sort(ctx, objects)
	if stopped != nil {
		return stopped
	}
	phases, err := source.Sort(taken)
	if err != nil {
		return blocked(fmt.Sprintf("revision %d of its Helm release: %s", one.Version, err), "")
	}
	revision, stopped := s.Next(ctx, phases)
	if stopped != nil {
		return stopped
	}
	s.describeAdopted(revision, one, left)
	if stopped := s.Create(ctx, nil, revision); stopped != nil {
		return stopped
	}
	return awaited()
}

// describeAdopted records in the next revision from which revision of the release it is made.
func (s *scope) describeAdopted(revision *olmv1alpha1.ClusterExtensionRevision, one *helmapplier.Revision, left []manifest.ID) {
	annotations := maps.Clone(one.Labels)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(releaseNotes(), key) })
	cause := cmp.Or(annotations[olmv1alpha1.VersionAnnotation], "its content") + " taken over from revision " + strconv.Itoa(one.Version) + " of its Helm release (" + one.Status + ")"
	if len(left) > 0 {
		cause += fmt.Sprintf(", without %s, whose kind is gone", left[0])
		if len(left) > 1 {
			cause += fmt.Sprintf(" and %d others", len(left)-1)
		}
	}
	if one.Status != helmapplier.Deployed {
		// It is unknown which of its objects exist, so the desired content is created next.
		delete(annotations, extension.MadeOfAnnotation)
	}
	annotations[olmv1alpha1.AdoptedReleaseAnnotation] = s.releaseName(one.Version)
	annotations[olmv1alpha1.ChangeCauseAnnotation] = cause
	s.own(revision)
	revision.Annotations = annotations
	revision.Spec.CollisionProtection, revision.Spec.AdoptedTeardownPolicy = olmv1alpha1.CollisionProtectionNone, olmv1alpha1.TeardownPolicyDelete
	if value := s.extension.Annotations[extension.YieldAnnotation]; value != "" {
		revision.Spec.Yield, _ = extension.ParseYield(value) // the next pass reports invalid values
	}
}

// objectsOf returns the objects of a release without the labels that OLM's appliers add. So they
// equal the objects of the bundle.
func objectsOf(one *helmapplier.Revision) ([]manifest.Object, error) {
	var objects []manifest.Object
	stream := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(one.Manifest)), 4096)
	for {
		var raw json.RawMessage
		err := stream.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading its manifest: %w", err)
		}
		if len(bytes.TrimSpace(raw)) == 0 || string(raw) == "null" {
			continue
		}
		object, err := manifest.Parse(raw)
		if err != nil {
			return nil, err
		}
		if object, err = withoutLabels(object, ownerKindLabel, ownerNameLabel); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// sort separates the objects to take over from objects whose kind the cluster no longer serves,
// which cannot exist. It stops if an object has another owner.
func (s *scope) sort(ctx context.Context, objects []manifest.Object) (taken []manifest.Object, left []manifest.ID, stopped *maker.Outcome) {
	defined := map[string]bool{}
	for _, object := range objects {
		if !object.IsDefinition() {
			continue
		}
		kind, err := object.DefinedKind()
		if err != nil {
			return nil, nil, blocked(err.Error(), "")
		}
		defined[kind.String()] = true
	}
	for _, object := range objects {
		live, served, err := s.Objects.Metadata(ctx, object.Ref)
		switch {
		case err != nil:
			return nil, nil, retry(status.Failed, fmt.Errorf("looking at the objects of its Helm release: %w", err))
		case !served && !defined[object.GroupKind().String()]:
			left = append(left, object.ID)
			continue
		case live != nil:
			if owner := s.foreign(live); owner != "" {
				return nil, nil, blocked(fmt.Sprintf("%s is in its Helm release, and %s: neither of the two takes it from the other", object.ID, owner),
					"remove the object from one of the two")
			}
		}
		taken = append(taken, object)
	}
	return taken, left, nil
}

// foreign describes the owner of an object, empty without an owner and for Penstock's objects.
func (s *scope) foreign(live *metav1.PartialObjectMetadata) string {
	if chain := live.Labels[olmv1alpha1.ChainLabel]; chain != "" && chain != s.extension.Name {
		return fmt.Sprintf("belongs to the extension %s", chain)
	}
	if owner := metav1.GetControllerOf(live); owner != nil && owner.UID != s.extension.UID {
		return fmt.Sprintf("is controlled by %s %s", owner.Kind, owner.Name)
	}
	release, namespace := live.Annotations[helm.NameAnnotation], live.Annotations[helm.NamespaceAnnotation]
	if release != "" && (release != s.extension.Name || namespace != s.extension.Spec.Namespace) {
		return fmt.Sprintf("belongs to the Helm release %s/%s", namespace, release)
	}
	return ""
}

// finish completes adoptions after the newest revision has succeeded:
//
//  1. It removes the extension from the owners of the objects, because the engine deletes them. It
//     labels the Secrets of the release.
//  2. If the newest revision is an upgrade, and not itself an adoption, it deletes the Secrets,
//     unless
//     they must be kept.
//  3. It removes a release that was neither adopted nor handed over.
func (s *scope) finish(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision) *maker.Outcome {
	if !maker.HasSucceeded(newest) {
		return nil
	}
	ended := true
	for i := range s.Revisions {
		one := &s.Revisions[i]
		if one.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] == "" || one.DeletionTimestamp != nil {
			continue
		}
		var stopped *maker.Outcome
		switch one.Annotations[olmv1alpha1.ReleaseSecretsAnnotation] {
		case "":
			stopped = s.supersede(ctx, one)
		case secretsKept:
			stopped, ended = s.discard(ctx, one, newest), false
		}
		if stopped != nil {
			return stopped
		}
	}
	if ended {
		return s.clear(ctx)
	}
	return nil
}

// clear is the last step of finish. A process recorded this release, and died or lost the lease
// before it handed a revision over. The content of the release is outdated, so it is never adopted.
// A release that another program stored is not touched.
func (s *scope) clear(ctx context.Context) *maker.Outcome {
	if has, known := s.hasRelease(); !known || !has {
		return nil
	}
	history, stopped := s.history(ctx)
	if stopped != nil || len(history) == 0 || history[0].Labels[ofNote] == "" {
		return nil // a record of another program is no obstacle
	}
	var err error
	if s.KeepReleases {
		err = s.Releases.Supersede(ctx, s.extension.Name)
	} else {
		err = s.Releases.Delete(ctx, s.extension.Name)
	}
	if err != nil {
		return retry(status.Failed, fmt.Errorf("removing a Helm release that nothing was handed to: %w", err))
	}
	return nil
}

// supersede is the first step of finish.
func (s *scope) supersede(ctx context.Context, one *olmv1alpha1.ClusterExtensionRevision) *maker.Outcome {
	if stopped := s.disown(ctx, one); stopped != nil {
		return stopped
	}
	if err := s.Releases.Supersede(ctx, s.extension.Name); err != nil {
		return retry(status.Failed, fmt.Errorf("labelling the Helm release that %s was made of: %w", one.Name, err))
	}
	return s.annotate(ctx, one, map[string]any{olmv1alpha1.ReleaseSecretsAnnotation: secretsKept})
}

// discard is the second step of finish.
func (s *scope) discard(ctx context.Context, one, newest *olmv1alpha1.ClusterExtensionRevision) *maker.Outcome {
	if s.KeepReleases || newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] != "" {
		return nil
	}
	if err := s.Releases.Delete(ctx, s.extension.Name); err != nil {
		return retry(status.Failed, fmt.Errorf("removing the Helm release that %s was made of: %w", one.Name, err))
	}
	return s.annotate(ctx, one, map[string]any{olmv1alpha1.ReleaseSecretsAnnotation: secretsRemoved})
}

// disown removes the extension from the owners of the objects of a revision.
func (s *scope) disown(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) *maker.Outcome {
	for _, ref := range references.Of(revision) {
		live, _, err := s.Objects.Metadata(ctx, ref)
		if err == nil && live != nil {
			err = s.Objects.Disown(ctx, ref, live, s.owner())
		}
		if err != nil {
			return retry(status.Failed, fmt.Errorf("removing the extension from the owners of %s: %w", ref.ID, err))
		}
	}
	return nil
}

// Stored lists the extensions that have a Helm release, without a request for each.
type Stored interface {
	// Run watches until ctx ends. It calls changed on the first answer, and when the answer may
	// have changed.
	Run(ctx context.Context, changed func())
	// Releases returns the stored releases by the name of their extension. The value is true until
	// the engine has taken over the release. An error means that the releases are unknown.
	Releases() (map[string]bool, error)
}

// hasRelease reports whether the extension has a release that the engine has not taken over. It
// sends no request. known is false while the answer is unknown.
func (s *scope) hasRelease() (has, known bool) {
	if s.Stored == nil {
		return false, false
	}
	all, err := s.Stored.Releases()
	return all[s.extension.Name], err == nil
}

// addStored enqueues each extension with a release that the engine has not taken over.
func (c *Controller) addStored() {
	all, err := c.Stored.Releases()
	if err != nil {
		return
	}
	for name, open := range all {
		if open {
			c.queue.Add(name)
		}
	}
}
