package imagetemplate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
)

// errNoVersion reports that the version of the cluster is unknown. Its arrival causes a pass.
var errNoVersion = errors.New("the version of the cluster is not known yet")

// write writes the image if it differs, and then the status. Both writes are refused if the object
// has changed meanwhile.
func (s *scope) write(ctx context.Context, w desired, result imagetemplate.Result) error {
	conditions, err := s.writeImage(ctx, w, result)
	if err != nil {
		return err
	}
	all, changed := imagetemplate.Without(annotated.Conditions(s.object), s.outdated(w)...)
	if w.template != nil {
		var more bool
		all, more = imagetemplate.Merge(all, conditions, s.Clock.Now())
		changed = changed || more
	}
	if w.refused != "" {
		cause := fmt.Sprintf("annotation %s is set too, and only one of the two can choose the image", annotated.OLMAnnotation)
		refused, more := imagetemplate.Merge(all, imagetemplate.Parse(w.refused).Failed(annotated.Annotations()[annotated.OwnAnnotation], cause), s.Clock.Now())
		all, changed = refused, changed || more
	}
	if !changed {
		return nil
	}
	return s.writeConditions(ctx, all)
}

// writeImage writes the image, and returns the conditions about the template.
func (s *scope) writeImage(ctx context.Context, w desired, result imagetemplate.Result) ([]metav1.Condition, error) {
	if w.template == nil {
		return nil, nil
	}
	if cause := s.kind.Without(s.object); cause != "" {
		return w.template.Failed(w.types, cause), nil
	}
	if result.Image == "" || result.Image == s.kind.Image(s.object) {
		return w.template.Conditions(w.types, result), nil
	}
	written, err := s.Catalogs.Resource(s.kind.Resource).Namespace(s.object.GetNamespace()).Apply(ctx, s.object.GetName(), s.kind.WithImage(s.object, result.Image),
		metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsInvalid(err) {
		// The definition of the kind restricts references further.
		return w.template.Failed(w.types, "the cluster refuses the reference as an image of "+s.kind.Kind), nil
	}
	if apierrors.IsConflict(err) {
		return nil, err
	}
	if err != nil {
		// The error of an admission plugin may quote the object.
		return nil, fmt.Errorf("writing the image of %s %s: %w", s.kind.Kind, s.key.NamespacedName, withheld(err))
	}
	s.wrote(written)
	klog.FromContext(ctx).Info("An image follows its template", "kind", s.kind.Kind, "object", s.key.NamespacedName, "annotation", w.annotation)
	s.Events.Event(written, corev1.EventTypeNormal, "ImageFollowsTemplate", "the image was changed, as annotation "+w.annotation+" says")
	return w.template.Conditions(w.types, result), nil
}

// withheld returns an error without its text, which may contain the image.
func withheld(err error) error {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return fmt.Errorf("the cluster answered %s", reason)
	}
	return errors.New("the cluster gave no answer")
}

// writeConditions replaces the conditions in the status, if the object has not changed since it was
// read.
func (s *scope) writeConditions(ctx context.Context, all []any) error {
	if all == nil {
		all = []any{}
	}
	content, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.object.GetUID(), "resourceVersion": s.object.GetResourceVersion()},
		"status":   map[string]any{"conditions": all},
	})
	if err != nil {
		return fmt.Errorf("encoding the conditions of %s %s: %w", s.kind.Kind, s.key.NamespacedName, err)
	}
	var written *unstructured.Unstructured
	written, err = s.Catalogs.Resource(s.kind.Resource).Namespace(s.object.GetNamespace()).Patch(ctx, s.object.GetName(), types.MergePatchType, content,
		metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsConflict(err) {
		return err
	}
	if err != nil {
		return fmt.Errorf("writing the conditions of %s %s: %w", s.kind.Kind, s.key.NamespacedName, withheld(err))
	}
	s.wrote(written)
	return nil
}
