package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// addReleases lets Helm apply extensions with the identity of the engine, and lets the engine take
// their objects back. It does nothing if the engine's cluster is not the host.
func (s *Settings) addReleases(term leadership.Term, options *extension.Options) error {
	if term.TargetName != "" {
		return nil
	}
	config := component(term.Target, "helm")
	releases, err := helmapplier.New(config, term.Namespace, clock.RealClock{})
	if err != nil {
		return err
	}
	target, err := targetclient.New(targetclient.Options{Config: config, Redactor: term.Redactor})
	if err != nil {
		return fmt.Errorf("connecting to the cluster for objects of Helm releases: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster for owners of objects of Helm releases: %w", err)
	}
	options.Releases, options.Objects, options.Stored = releases, releasedObjects{target, client}, helmapplier.NewWatch(client, term.Namespace)
	options.ByHelm, options.KeepReleases = s.ByHelm(), s.KeepReleases
	return nil
}

type releasedObjects struct {
	target *targetclient.Client
	client metadata.Interface
}

// Metadata implements extension.Objects.
func (o releasedObjects) Metadata(ctx context.Context, ref manifest.Ref) (live *metav1.PartialObjectMetadata, served bool, err error) {
	live, err = o.target.ReadMetadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case meta.IsNoMatchError(err):
		return nil, false, nil
	}
	return live, true, err
}

// Resource implements extension.Objects.
func (o releasedObjects) Resource(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, served bool, err error) {
	mapping, err := o.target.Served(ctx, kind)
	switch {
	case meta.IsNoMatchError(err):
		return schema.GroupVersionResource{}, false, nil
	case err != nil:
		return schema.GroupVersionResource{}, false, err
	}
	return mapping.Resource, true, nil
}

// Disown implements extension.Objects. It does not change values of the object.
func (o releasedObjects) Disown(ctx context.Context, ref manifest.Ref, live *metav1.PartialObjectMetadata, owner metav1.OwnerReference) error {
	others := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(one metav1.OwnerReference) bool { return one.UID == owner.UID })
	if len(others) == len(live.OwnerReferences) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion, "ownerReferences": others}})
	if err != nil {
		return err
	}
	mapping, err := o.target.Served(ctx, ref.GroupVersionKind())
	if err != nil {
		return err
	}
	_, err = o.client.Resource(mapping.Resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: helmapplier.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func manifestsOf(own versioned.Interface) extension.Manifests {
	return func(ctx context.Context, revision string) ([][]byte, error) {
		list := &olmv1alpha1.RevisionManifestList{}
		err := own.OlmV1alpha1().RESTClient().Get().Resource("clusterextensionrevisions").Name(revision).SubResource("manifests").Do(ctx).Into(list)
		if err != nil {
			return nil, err
		}
		var out [][]byte
		for _, item := range list.Items {
			out = append(out, item.Raw)
		}
		return out, nil
	}
}
