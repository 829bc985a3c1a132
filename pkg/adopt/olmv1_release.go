package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source/helm"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

func (a *Adopter) releaseOf(ctx context.Context, namespace string, of unstructured.Unstructured) (*origin, error) {
	name := of.GetName()
	list, err := a.secrets.Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: chunked.Selector(name)})
	if err != nil {
		return nil, fmt.Errorf("reading the Helm release %s/%s: %w", namespace, name, err)
	}
	var all []helm.Release
	var warnings []string
	indexes := map[int]*corev1.Secret{}
	for i := range list.Items {
		var unanswered error
		one, err := chunked.Decode(&list.Items[i], func(name string) (*corev1.Secret, error) {
			chunk, err := a.secrets.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			unanswered = err
			return chunk, err
		})
		if index := &list.Items[i]; err != nil && unanswered == nil && index.Labels[chunked.LabelStatus] == helm.StatusSuperseded {
			warnings = append(warnings, fmt.Sprintf("Secret %s/%s of a superseded revision is left out: %s", index.Namespace, index.Name, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		all, indexes[one.Version] = append(all, one), &list.Items[i]
	}
	if len(all) == 0 {
		return nil, nil
	}
	history, err := helm.Choose(all)
	if err != nil {
		return nil, fmt.Errorf("the Helm release %s/%s: %w", namespace, name, err)
	}
	found := &origin{owners: map[types.UID]bool{of.GetUID(): true}, release: indexes[history.Deployed.Version], warnings: warnings}
	found.newOwner = targetclient.NewOwner{Manager: chunked.Owner, Operation: metav1.ManagedFieldsOperationUpdate}
	if failed := history.Failed; failed != nil {
		return nil, fmt.Errorf("revision %d of the Helm release %s/%s is %s, and what it changed may be in the cluster: let operator-controller finish the upgrade, then scale it to zero", failed.Version, namespace, name, failed.Info.Status)
	}
	if err := a.revisionsOfRelease(ctx, found, Request{Namespace: namespace, Release: name, Extension: name}, history); err != nil {
		return nil, err
	}
	found.from = found.revisions[0].annotations[v1alpha1.AdoptedFromAnnotation]
	if found.owner != nil {
		found.owner = &metav1.OwnerReference{
			APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: name, UID: of.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}
	}
	return found, nil
}

// revisionsOfRelease converts the adopted part of a release to revisions.
func (a *Adopter) revisionsOfRelease(ctx context.Context, found *origin, request Request, history helm.History) error {
	digester := digesterFor(history.Deployed.Manifest)
	for i, one := range append([]helm.Release{history.Deployed}, history.Older...) {
		manifests, owned, err := withoutOwners(one.Manifest)
		if warning := omissionReason(one, i == 0, err); warning != "" {
			found.warnings = append(found.warnings, warning)
			continue
		}
		if err != nil {
			return fmt.Errorf("revision %d of the Helm release %s: %w", one.Version, request, err)
		}
		one.Manifest = manifests
		revision := request.ofHelm(one, history.Highest)
		annotations, version := bundleAnnotations(one.Labels)
		for key, value := range annotations {
			revision.annotations[key] = value
		}
		revision.labels = ownerLabels(request.Extension)
		revision.annotations[v1alpha1.AdoptedFromAnnotation] = "HelmRelease/" + helmrelease.Release{Namespace: request.Namespace, Name: request.Release, Revision: one.Version}.String()
		if version != "" {
			revision.version, revision.Chart = version, version
		}
		if revision.State = v1alpha1.LifecycleStateArchived; i == 0 {
			revision.State = v1alpha1.LifecycleStateActive
			if owned {
				found.owner = &metav1.OwnerReference{}
			}
		}
		rendered, err := a.renderRelease(ctx, one)
		if err == nil {
			err = revision.take(rendered.Phases, digester)
		}
		if warning := omissionReason(one, i == 0, err); warning != "" {
			found.warnings = append(found.warnings, warning)
			continue
		}
		if err != nil {
			return fmt.Errorf("revision %d of the Helm release %s: %w", one.Version, request, err)
		}
		for _, warning := range rendered.Warnings {
			found.warnings = append(found.warnings, warning.String())
		}
		found.revisions = append(found.revisions, revision)
	}
	return nil
}

// withoutOwners removes the owners from the manifest of a release, and reports whether it had any.
func withoutOwners(manifests string) (out string, owned bool, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	var text bytes.Buffer
	for {
		var raw unstructuredContent
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return text.String(), owned, nil
		}
		if err != nil {
			return "", false, &unreadableError{fmt.Errorf("reading its manifest: %w", err)}
		}
		if len(raw) == 0 {
			continue
		}
		if metadata, is := raw["metadata"].(map[string]any); is && metadata["ownerReferences"] != nil {
			delete(metadata, "ownerReferences")
			owned = true
		}
		line, err := utiljson.Marshal(map[string]any(raw))
		if err != nil {
			return "", false, err
		}
		text.WriteString("---\n")
		text.Write(append(line, '\n'))
	}
}

// unstructuredContent decodes JSON without turning integers into floats.
type unstructuredContent map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (c *unstructuredContent) UnmarshalJSON(raw []byte) error {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return err
	}
	*c = content
	return nil
}
