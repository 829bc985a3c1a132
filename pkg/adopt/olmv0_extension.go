package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/adopt/olmv0"
	"github.com/penstock-project/penstock/pkg/extension"
)

// clusterExtension returns the ClusterExtension that replaces the Subscription: with manual
// approval, and at the installed version.
func clusterExtension(of *olmv0.Subscription, csv *olmv0.ClusterServiceVersion, name, watches string) (*unstructured.Unstructured, error) {
	wanted := extension.Extension{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{extension.ApprovalAnnotation: "Manual"}}}
	wanted.APIVersion, wanted.Kind = extension.Kind.ToAPIVersionAndKind()
	catalog := &extension.Catalog{PackageName: of.Spec.Package, Version: csv.Spec.Version}
	if of.Spec.Channel != "" {
		catalog.Channels = []string{of.Spec.Channel}
	}
	wanted.Spec.Namespace = of.Namespace
	wanted.Spec.Source = extension.Source{SourceType: extension.SourceCatalog, Catalog: catalog}
	inline := map[string]any{}
	if watches != olmv0.AllNamespaces {
		inline["watchNamespace"] = watches
	}
	deployment := maps.Clone(of.Spec.Config)
	delete(deployment, "selector")
	if len(deployment) > 0 {
		inline["deploymentConfig"] = deployment
	}
	if len(inline) > 0 {
		raw, err := json.Marshal(inline)
		if err != nil {
			return nil, err
		}
		wanted.Spec.Config = &extension.Config{ConfigType: "Inline", Inline: raw}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted)
	if err != nil {
		return nil, fmt.Errorf("making the ClusterExtension %s: %w", name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if len(inline) > 0 {
		if err := unstructured.SetNestedMap(content, runtime.DeepCopyJSON(inline), "spec", "config", "inline"); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (a *Adopter) compareWanted(ctx context.Context, plan *OLMv0Plan) error {
	live, err := a.objects.Resource(extension.Resource).Get(ctx, plan.Extension, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ClusterExtension %s: %w", plan.Extension, err)
	}
	have, err := extension.From(live)
	if err != nil {
		return err
	}
	wanted, err := extension.From(plan.wanted)
	if err != nil {
		return err
	}
	same := have.Spec.Namespace == wanted.Spec.Namespace && have.Spec.Source.Catalog != nil && have.Spec.Source.Catalog.PackageName == wanted.Spec.Source.Catalog.PackageName
	if !plan.Known || !same {
		return fmt.Errorf("there is a ClusterExtension %s already, which was not made from this Subscription: choose another name with --extension", plan.Extension)
	}
	plan.made = true
	return nil
}

func (a *Adopter) createWanted(ctx context.Context, plan *OLMv0Plan, options metav1.CreateOptions) error {
	_, err := a.objects.Resource(extension.Resource).Create(ctx, plan.wanted, options)
	switch {
	case apierrors.IsNotFound(err):
		return errNoDefinition
	case err != nil:
		return fmt.Errorf("creating ClusterExtension %s: %w", plan.Extension, err)
	}
	return nil
}

func (a *Adopter) own(ctx context.Context, plan *OLMv0Plan, name string) error {
	owner, err := a.objects.Resource(extension.Resource).Get(ctx, plan.Extension, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading ClusterExtension %s: %w", plan.Extension, err)
	}
	revisions := a.revisions.OlmV1alpha1().ClusterExtensionRevisions()
	for range looks {
		live, err := revisions.Get(ctx, name, metav1.GetOptions{})
		if err != nil || metav1.GetControllerOf(live) != nil {
			return err
		}
		reference := *metav1.NewControllerRef(owner, extension.Kind)
		reference.BlockOwnerDeletion = nil
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": live.UID, "resourceVersion": live.ResourceVersion, "ownerReferences": append(slices.Clone(live.OwnerReferences), reference),
		}})
		if err != nil {
			return err
		}
		_, err = revisions.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("%s keeps changing: run the command again", name)
}
