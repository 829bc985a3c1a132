package chartkind

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// applied returns an object for server-side apply, with only Penstock's own fields. The uid
// prevents a write to another object with the name, and a creation.
func applied(object *unstructured.Unstructured, metadata, status map[string]any) ([]byte, error) {
	head := map[string]any{"name": object.GetName(), "uid": object.GetUID()}
	if object.GetNamespace() != "" {
		head["namespace"] = object.GetNamespace()
	}
	for name, value := range metadata {
		head[name] = value
	}
	out := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": head}
	if status != nil {
		out["status"] = status
	}
	body, err := json.Marshal(out)
	return manifest.ForApply(body), err
}

func (a Account) of(kind chartkind.ResourceKind, object *unstructured.Unstructured) dynamic.ResourceInterface {
	if object.GetNamespace() != "" {
		return a.Objects.Resource(kind.GVR()).Namespace(object.GetNamespace())
	}
	return a.Objects.Resource(kind.GVR())
}

// applyFinalizers sets Penstock's finalizers, and keeps the finalizers of other managers.
func applyFinalizers(ctx context.Context, account Account, kind chartkind.ResourceKind, object *unstructured.Unstructured, finalizers []string) error {
	metadata := map[string]any{}
	if len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	patch, err := applied(object, metadata, nil)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", object.GetName(), err)
	}
	_, err = account.of(kind, object).Patch(ctx, object.GetName(), types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager, Force: ptr.To(true)})
	return err
}

// applyStatus writes a manager's part of the status. The managers own different fields, so neither
// loses the values of the other. It returns the resourceVersion of the stored object.
func (s *served) applyStatus(ctx context.Context, object *unstructured.Unstructured, manager string, fields map[string]any) (string, error) {
	patch, err := applied(object, nil, fields)
	if err != nil {
		return "", fmt.Errorf("encoding the status of %s: %w", object.GetName(), err)
	}
	stored, err := s.account.of(s.spec.Resource, object).Patch(ctx, object.GetName(), types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return "", err
	case err != nil:
		s.noteRefusal(err)
		return "", fmt.Errorf("writing the status of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return stored.GetResourceVersion(), nil
}

func conditionFields(conditions []metav1.Condition) []any {
	out := make([]any, len(conditions))
	for i, one := range conditions {
		out[i] = map[string]any{
			"type": one.Type, "status": string(one.Status), "reason": one.Reason, "message": one.Message,
			"lastTransitionTime": one.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		}
	}
	return out
}
